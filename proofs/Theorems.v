(** What is proved. The definitions are in Draw.v, the checks in Check.v; all other files are
    proofs. The checks are functions to bool that Coq runs on the integers of a file.

    The numbers in brackets are those of the same theorems on paper, in docs/privacy.md. *)

From Coq Require Import ZArith List QArith.
From LabelDP Require Import Draw Check Windows Tables Lookups Additives Mixtures Epsilon.
Import ListNotations.
Open Scope Z_scope.

(** [1] A window randomizer is private whatever chooses the offset, as long as it is in range. *)
Theorem window_private_at_any_offset : forall num den w,
  window_check num den w = true ->
  private num den (in_range w) (words 64) (window_draw w).
Proof. exact window_offsets_private_proof. Qed.

(** [1] So it is for the offsets that its labels have. *)
Theorem window_private : forall num den w,
  window_check num den w = true ->
  private num den (row (rows_of w)) (words 64) (window_out w).
Proof. exact window_rows_private_proof. Qed.

(** [1] As the graph finds the segment: a gather from its lookup grid, an addition and a shift. *)
Theorem window_lookup_private : forall num den w H grid,
  window_check num den w = true -> grid_check H grid (base_line w ++ extra w) = true ->
  private num den (row (rows_of w)) (words 64) (window_looked_up w H grid).
Proof. exact looked_up_private_proof. Qed.

(** The check is exact: where the integers are a window randomizer, it is true if and only if at
    every offset in range every output has at most num / den times its base weight. *)
Theorem window_check_exact : forall num den w,
  0 < den <= num -> window_is_drawn w = true ->
  window_check num den w = true <->
  forall i s, 0 <= i < outputs w -> in_range w s ->
    den * count (words 64) (fun v => window_draw w s v =? i)
    <= num * (2 ^ (64 - bits w) * at_ (base w) i).
Proof. exact window_check_exact_proof. Qed.

(** [14] Tables by group, on their common line: any two labels of the same group g. *)
Theorem grouped_private : forall num den k tables g,
  grouped_check num den k tables = true -> (g < length tables)%nat ->
  private num den (row k) (words 64) (grouped_out tables g).
Proof. exact grouped_private_proof. Qed.

(** [2] An alias table for each label. *)
Theorem table_private : forall num den B c m rows,
  table_file_check num den B c m rows = true ->
  private num den (row (Z.of_nat (length rows))) (words 64) (table_out B c rows).
Proof. exact table_private_proof. Qed.

(** The check of counts is exact: every pair of rows, every output. *)
Theorem table_check_exact : forall num den B m counts,
  0 < den <= num -> counts <> [] -> table_is_drawn B m counts = true ->
  table_check num den B m counts = true <->
  forall r r' o, In r counts -> In r' counts -> 0 <= o < m -> den * at_ r o <= num * at_ r' o.
Proof. exact table_check_exact_proof. Qed.

(** [6] Additive noise of two words, clamped at both ends. *)
Theorem additive_private : forall num den a c d block_entries below_entries above_entries,
  additive_file_check num den a c d block_entries below_entries above_entries = true ->
  private num den (row (labels a)) (list_prod (words 64) (words 64))
    (additive_out a c d block_entries below_entries above_entries).
Proof. exact additive_private_proof. Qed.

(** [1] Labels that a last word leads to rows, in whatever way: its words are counted, too. *)
Theorem mixed_private : forall (Y W O : Type) num den (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O) (rs : list Z),
  private num den label ws out ->
  private num den (fun f => forall r, label (f r)) (list_prod ws rs) (mixed out).
Proof. exact (@mixed_private_proof). Qed.

(** [4] A real label between the rows [fst p] and [fst p + 1], rounded up by [snd p] of the 2^53
    values of its last word. *)
Theorem rounded_private : forall (W O : Type) num den k (ws : list W) (out : Z -> W -> O),
  private num den (row k) ws out ->
  private num den
    (fun p => row k (fst p) /\ (row k (fst p + 1) \/ snd p <= 0)) (list_prod ws (words 64))
    (fun p => mixed out (rounded (fst p) (snd p))).
Proof. exact (@rounded_private_proof). Qed.

(** [12 a] n labels of one person, each with a word of its own. *)
Theorem tuples_private : forall (Y W O : Type) num den (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O) (n : nat),
  0 <= den -> 0 <= num ->
  private num den label ws out ->
  private (num ^ Z.of_nat n) (den ^ Z.of_nat n)
    (fun ys => length ys = n /\ forall y, In y ys -> label y) (tuples n ws) (drawn_all out).
Proof. exact (@tuples_private_proof). Qed.

(** From a ratio to epsilon. *)
Theorem ratio_to_epsilon : forall (Y W O : Type) num den e n (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O),
  epsilon_check num den e n = true ->
  private num den label ws out -> epsilon_private e label ws out.
Proof. exact (@epsilon_private_proof). Qed.
