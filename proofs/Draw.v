(** The draws of labeldp's artifacts, and what it means that they are private.

    These are definitions only, all that the statements in Theorems.v are about. They follow
    docs/artifact-format.md. Numbers are Z, so that nothing is as long as a word is large. *)

From Coq Require Import ZArith List QArith.
Import ListNotations.
Open Scope Z_scope.

(** * Counting and privacy *)

(** The integers 0 ... n - 1, and all words of so many bits. *)
Definition upto (n : Z) : list Z := map Z.of_nat (seq 0 (Z.to_nat n)).
Definition words (bits : Z) : list Z := upto (2 ^ bits).

(** #{w in ws : P w}. *)
Definition count {W : Type} (ws : list W) (P : W -> bool) : Z :=
  Z.of_nat (length (filter P ws)).

(** Words are equally likely. For all labels and all sets S of outputs:
    den * #{w : out y w in S} <= num * #{w : out y' w in S}. *)
Definition private {Y W O : Type} (num den : Z) (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O) : Prop :=
  forall y y', label y -> label y' ->
  forall S : O -> bool,
  den * count ws (fun w => S (out y w)) <= num * count ws (fun w => S (out y' w)).

(** The sum of e^j / j! over j <= n: a lower bound of exp(e) for every e >= 0 and every n, since
    all terms of the series are positive. *)
Fixpoint exp_term (e : Q) (n : nat) : Q :=
  match n with
  | O => 1
  | S m => exp_term e m * (e / inject_Z (Z.of_nat n))
  end.

Fixpoint exp_lower (e : Q) (n : nat) : Q :=
  match n with
  | O => 1
  | S m => exp_lower e m + exp_term e n
  end.

(** e-DP: private with a ratio of at most a lower bound of exp(e). *)
Definition epsilon_private {Y W O : Type} (e : Q) (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O) : Prop :=
  exists (num den : Z) (n : nat),
  0 < den /\ (0 <= e)%Q /\ (inject_Z num / inject_Z den <= exp_lower e n)%Q /\
  private num den label ws out.

(** * What the forms have in common *)

(** The i-th number of a list. *)
Definition at_ (l : list Z) (i : Z) : Z := nth (Z.to_nat i) l 0.

Definition total (l : list Z) : Z := fold_right Z.add 0 l.

(** Rows 0 ... k - 1. *)
Definition row (k y : Z) : Prop := 0 <= y < k.

(** The highest B bits of a word. *)
Definition high_bits (B word : Z) : Z := Z.shiftr word (64 - B).

(** * Windows *)

(** Consecutive segments (length, output), and the output of the segment that contains t. *)
Notation line := (list (Z * Z)) (only parsing).

Fixpoint owner (l : line) (t : Z) : Z :=
  match l with
  | [] => -1
  | (n, i) :: rest => if t <? n then i else owner rest (t - n)
  end.

Definition length_of (l : line) : Z := total (map fst l).

(** Output i owns base[i] integers of the base line; the extra line lies behind it. *)
Record window := Window { bits : Z; base : list Z; extra : line; offsets : list Z }.

Definition base_line (w : window) : line := combine (base w) (upto (Z.of_nat (length (base w)))).
Definition base_total (w : window) : Z := total (base w).
Definition width (w : window) : Z := 2 ^ bits w - base_total w.
Definition outputs (w : window) : Z := Z.of_nat (length (base w)).

(** What a window at the offset s makes of a word. *)
Definition window_draw (w : window) (s word : Z) : Z :=
  let u := high_bits (bits w) word in
  owner (base_line w ++ extra w) (if u <? base_total w then u else u + s).

Definition in_range (w : window) (s : Z) : Prop := 0 <= s <= length_of (extra w) - width w.

(** The private label of row y. *)
Definition window_out (w : window) (y word : Z) : Z := window_draw w (at_ (offsets w) y) word.
Definition rows_of (w : window) : Z := Z.of_nat (length (offsets w)).

(** Tables by group: base lines one behind the other, behind them the extra lines. *)
Definition common_line (tables : list window) : line :=
  concat (map base_line tables) ++ concat (map extra tables).
Definition base_start (tables : list window) (g : nat) : Z :=
  total (map base_total (firstn g tables)).
Definition extra_start (tables : list window) (g : nat) : Z :=
  total (map base_total tables) + total (map (fun w => length_of (extra w)) (firstn g tables)).

Definition grouped_out (tables : list window) (g : nat) (y word : Z) : Z :=
  let w := nth g tables (Window 0 [] [] []) in
  let u := high_bits (bits w) word in
  owner (common_line tables)
    (if u <? base_total w then u + base_start tables g
     else u + (extra_start tables g - base_total w + at_ (offsets w) y)).

(** The lookup of a graph: stretches of the line one behind the other, each cut into buckets of
    2^shift integers with an entry each; the number of t's segment is (t + entry) / 2^H. *)
Record stretch := Stretch { from : Z; upto_ : Z; shift : Z; entries : list Z }.

Fixpoint entry_of (grid : list stretch) (t : Z) : Z :=
  match grid with
  | [] => 0
  | s :: rest =>
      if t <? upto_ s then at_ (entries s) (Z.shiftr t (shift s) - Z.shiftr (from s) (shift s))
      else entry_of rest t
  end.

Definition segment_of (H : Z) (grid : list stretch) (t : Z) : Z :=
  Z.shiftr (t + entry_of grid t) H.

(** The private label of row y as the graph finds it: the output that owns that segment. *)
Definition window_looked_up (w : window) (H : Z) (grid : list stretch) (y word : Z) : Z :=
  let u := high_bits (bits w) word in
  let t := if u <? base_total w then u else u + at_ (offsets w) y in
  at_ (map snd (base_line w ++ extra w)) (segment_of H grid t).

(** * Alias tables: 2^c entries, and the item of a word *)

Definition item (B c : Z) (entries : list Z) (word : Z) : Z :=
  let u := high_bits B word in
  Z.min u (at_ entries (u mod 2 ^ c)) mod 2 ^ c.

(** * Tables: an alias table for each row *)

Definition table_out (B c : Z) (rows : list (list Z)) (y word : Z) : Z :=
  item B c (nth (Z.to_nat y) rows []) word.

(** * Additive noise *)

Record additive := Additive {
  a_bits : Z; labels : Z; spacing : Z; blocks : list Z; below : list Z; above : list Z;
  low : Z; high : Z }.

Definition period (a : additive) : Z := (labels a - 1) * spacing a.
Definition reach (a : additive) : Z := Z.of_nat (length (blocks a)) / 2 - 1.

(** Row y at y * spacing, moved by b * period + i, and clamped; the first word draws b, counted
    from the lowest block, the second i from the shape of b's side of zero. [block] and [inside]
    say how they do that. *)
Definition additive_draw (a : additive) (block : Z -> Z) (inside : bool -> Z -> Z)
    (y : Z) (ws : Z * Z) : Z :=
  let b := block (fst ws) - (reach a + 1) in
  let i := inside (0 <=? b) (snd ws) in
  Z.min (Z.max (y * spacing a + (b * period a + i)) (low a)) (high a).

(** With alias tables of 2^c blocks and of 2^d places. *)
Definition additive_out (a : additive) (c d : Z) (block_entries below_entries above_entries : list Z)
    : Z -> Z * Z -> Z :=
  additive_draw a (item (a_bits a) c block_entries)
    (fun up => item (a_bits a) d (if up then above_entries else below_entries)).

(** * Real labels: a last word rounds a position up or down *)

Definition rounded (whole up word : Z) : Z :=
  whole + (if Z.shiftr word 11 <? up then 1 else 0).

(** Any function from the last word to the label that is then drawn for. *)
Definition mixed {Y W O : Type} (out : Y -> W -> O) (f : Z -> Y) (ws : W * Z) : O :=
  out (f (snd ws)) (fst ws).

(** * Several labels of one person, each with words of its own *)

Fixpoint tuples {W : Type} (n : nat) (ws : list W) : list (list W) :=
  match n with
  | O => [[]]
  | S m => flat_map (fun w => map (cons w) (tuples m ws)) ws
  end.

Definition drawn_all {Y W O : Type} (out : Y -> W -> O) (ys : list Y) (ws : list W) : list O :=
  map (fun p => out (fst p) (snd p)) (combine ys ws).
