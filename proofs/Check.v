(** The checks: functions to bool that run on the integers of a file (vm_compute, or extracted).
    Theorems.v says what follows where they are true. *)

From Coq Require Import ZArith List QArith FMapPositive.
From LabelDP Require Import Draw.
Import ListNotations.
Open Scope Z_scope.

(** Numbers by index; what is not there is [none]. *)
Definition key (i : Z) : positive := Z.to_pos (i + 1).
Definition find {A} (none : A) (m : PositiveMap.t A) (i : Z) : A :=
  match PositiveMap.find (key i) m with Some x => x | None => none end.
Definition put {A} (i : Z) (x : A) (m : PositiveMap.t A) : PositiveMap.t A :=
  PositiveMap.add (key i) x m.

(** * Windows *)

(** Of each output its segments as (start, end). *)
Fixpoint places (l : line) (start : Z) (m : PositiveMap.t (list (Z * Z))) :
    PositiveMap.t (list (Z * Z)) :=
  match l with
  | [] => m
  | (n, i) :: rest => places rest (start + n) (put i ((start, start + n) :: find [] m i) m)
  end.

(** How many of the integers s ... e - 1 lie in segments. *)
Definition covered (segments : list (Z * Z)) (s e : Z) : Z :=
  total (map (fun p => Z.max 0 (Z.min (snd p) e - Z.max (fst p) s)) segments).

(** The most that a window of X integers, which begins at 0 ... last, covers of them: it is reached
    where the window begins with a segment, or lies last. *)
Definition most_covered (segments : list (Z * Z)) (X last : Z) : Z :=
  fold_right Z.max 0
    (map (fun p => let s := Z.min (fst p) last in covered segments s (s + X)) segments).

Definition window_is_drawn (w : window) : bool :=
  let last := length_of (extra w) - width w in
  let m := outputs w in
  (1 <=? bits w) && (bits w <=? 64) &&
  forallb (fun b => 1 <=? b) (base w) &&
  forallb (fun p => (1 <=? fst p) && (0 <=? snd p) && (snd p <? m)) (extra w) &&
  (0 <=? width w) && (0 <=? last) &&
  forallb (fun s => (0 <=? s) && (s <=? last)) (offsets w).

Definition window_ratio (num den : Z) (w : window) : bool :=
  let X := width w in
  let last := length_of (extra w) - X in
  let of_output := places (extra w) 0 (PositiveMap.empty _) in
  (den <=? num) &&
  forallb (fun p => den * (fst p + most_covered (find [] of_output (snd p)) X last) <=? num * fst p)
    (base_line w).

Definition window_check (num den : Z) (w : window) : bool :=
  (0 <? den) && window_is_drawn w && window_ratio num den w.

(** The tables of groups have the same k labels. *)
Definition grouped_check (num den k : Z) (tables : list window) : bool :=
  forallb (fun w => window_check num den w && (rows_of w =? k)) tables.

(** * The lookup of windows *)

(** The segments that the buckets from b on lead to: in each at most two, one behind the other. *)
Fixpoint buckets (H first stop shift b : Z) (entries : list Z) : list (Z * Z) :=
  match entries with
  | [] => []
  | q :: rest =>
      let lo := Z.max first (b * 2 ^ shift) in
      let hi := Z.min stop ((b + 1) * 2 ^ shift) in
      let id := Z.shiftr (lo + q) H in
      let cut := Z.min hi ((id + 1) * 2 ^ H - q) in
      (cut - lo, id) :: (hi - cut, Z.shiftr (hi - 1 + q) H) ::
      buckets H first stop shift (b + 1) rest
  end.

Fixpoint buckets_fit (H first stop shift b : Z) (entries : list Z) : bool :=
  match entries with
  | [] => stop <=? b * 2 ^ shift
  | q :: rest =>
      let lo := Z.max first (b * 2 ^ shift) in
      let hi := Z.min stop ((b + 1) * 2 ^ shift) in
      (lo <? hi) && (Z.shiftr (hi - 1 + q) H <=? Z.shiftr (lo + q) H + 1) &&
      buckets_fit H first stop shift (b + 1) rest
  end.

Fixpoint merged (l : list (Z * Z)) : list (Z * Z) :=
  match l with
  | [] => []
  | (n, i) :: rest =>
      if n =? 0 then merged rest
      else match merged rest with
           | (m, j) :: more => if i =? j then (n + m, i) :: more else (n, i) :: (m, j) :: more
           | [] => [(n, i)]
           end
  end.

Fixpoint grid_fits (H at_first : Z) (grid : list stretch) : bool :=
  match grid with
  | [] => true
  | s :: rest =>
      (from s =? at_first) && (0 <=? from s) && (from s <? upto_ s) && (0 <=? shift s) &&
      buckets_fit H (from s) (upto_ s) (shift s) (Z.shiftr (from s) (shift s)) (entries s) &&
      grid_fits H (upto_ s) rest
  end.

Definition pieces (H : Z) (grid : list stretch) : list (Z * Z) :=
  flat_map (fun s => buckets H (from s) (upto_ s) (shift s) (Z.shiftr (from s) (shift s)) (entries s))
    grid.

Definition same_pairs (l k : list (Z * Z)) : bool :=
  (Z.of_nat (length l) =? Z.of_nat (length k))
  && forallb (fun p => (fst (fst p) =? fst (snd p)) && (snd (fst p) =? snd (snd p))) (combine l k).

(** The buckets lead to the segments of the line, numbered from 0. *)
Definition grid_check (H : Z) (grid : list stretch) (l : list (Z * Z)) : bool :=
  (0 <=? H) && grid_fits H 0 grid &&
  same_pairs (merged (pieces H grid)) (combine (map fst l) (upto (Z.of_nat (length l)))).

(** * Tables: counts of words, [k][m] *)

Definition columns_of (f : Z -> Z -> Z) (rows : list (list Z)) : list Z :=
  match rows with
  | [] => []
  | first :: others =>
      fold_left (fun most r => map (fun p => f (fst p) (snd p)) (combine most r)) others first
  end.

Definition table_is_drawn (B m : Z) (counts : list (list Z)) : bool :=
  (1 <=? B) && (B <=? 64) && (1 <=? m) &&
  forallb (fun r => (Z.of_nat (length r) =? m) && (total r =? 2 ^ B)
                    && forallb (fun n => 1 <=? n) r) counts.

Definition table_ratio (num den : Z) (counts : list (list Z)) : bool :=
  (den <=? num) &&
  forallb (fun p => den * fst p <=? num * snd p)
    (combine (columns_of Z.max counts) (columns_of Z.min counts)).

Definition table_check (num den B m : Z) (counts : list (list Z)) : bool :=
  (0 <? den) && table_is_drawn B m counts && table_ratio num den counts.

(** * Alias tables: the words that lead to each item *)

(** Column j has H = 2^(B - c) words; the lowest [own] lead to j, the others to its alias. *)
Fixpoint shares (B c : Z) (j : Z) (entries : list Z) : list (Z * Z) :=
  match entries with
  | [] => []
  | P :: rest =>
      let H := 2 ^ (B - c) in
      let a := P mod 2 ^ c in
      let own := Z.max 0 (Z.min H (P / 2 ^ c + (if j <=? a then 1 else 0))) in
      (j, own) :: (a, H - own) :: shares B c (j + 1) rest
  end.

Definition tally (l : list (Z * Z)) : PositiveMap.t Z :=
  fold_right (fun p m => put (fst p) (find 0 m (fst p) + snd p) m) (PositiveMap.empty _) l.

Definition weights (B c : Z) (entries : list Z) : list Z :=
  let m := tally (shares B c 0 entries) in map (find 0 m) (upto (2 ^ c)).

(** 2^c entries, words of which lead to the items below m only; and how many to each. *)
Definition alias_is_drawn (B c m : Z) (entries : list Z) : bool :=
  (0 <=? c) && (c <=? B) && (B <=? 64) && (1 <=? m) && (m <=? 2 ^ c) &&
  (Z.of_nat (length entries) =? 2 ^ c) && forallb (fun P => 0 <=? P) entries &&
  forallb (fun n => n =? 0) (skipn (Z.to_nat m) (weights B c entries)).

Definition first_weights (B c m : Z) (entries : list Z) : list Z :=
  firstn (Z.to_nat m) (weights B c entries).

Definition table_file_check (num den B c m : Z) (rows : list (list Z)) : bool :=
  forallb (alias_is_drawn B c m) rows &&
  table_check num den B m (map (first_weights B c m) rows).

(** * Additive noise *)

(** p / q of pairs of positive integers: the largest, as (p, q). *)
Definition largest_quotient (pairs : list (Z * Z)) : Z * Z :=
  fold_right (fun p most => if fst most * snd p <? fst p * snd most then p else most) (0, 1) pairs.

(** Neighbours of a list; running extremes from the left and from the right. *)
Definition steps (l : list Z) : list (Z * Z) := combine l (tl l).

Fixpoint running (f : Z -> Z -> Z) (so_far : Z) (l : list Z) : list Z :=
  match l with
  | [] => []
  | x :: rest => let y := f so_far x in y :: running f y rest
  end.
Definition from_left (f : Z -> Z -> Z) (l : list Z) : list Z := running f (hd 0 l) l.
Definition from_right (f : Z -> Z -> Z) (l : list Z) : list Z := rev' (from_left f (rev' l)).

Definition largest (l : list Z) : Z := fold_left Z.max l (hd 0 l).
Definition least (l : list Z) : Z := fold_left Z.min l (hd 0 l).

(** The product of two quotients is at most num / den. *)
Definition product_within (num den : Z) (p q : Z * Z) : bool :=
  den * (fst p * fst q) <=? num * (snd p * snd q).

(** Noises of consecutive blocks that are at most a period apart: places i ... of the left block
    against places ... i of the right one. *)
Definition neighbours_within (num den : Z) (bs left right : list Z) : bool :=
  let falls := combine (from_right Z.max left) (from_left Z.min right) in
  let rises := combine (from_left Z.max right) (from_right Z.min left) in
  match bs with
  | [] | [_] => true
  | _ =>
    product_within num den (largest_quotient falls) (largest_quotient (steps bs)) &&
    product_within num den (largest_quotient rises)
      (largest_quotient (map (fun p => (snd p, fst p)) (steps bs)))
  end.

(** 2^(2B) times the probability of a noise of at most n. *)
Definition noise_upto (a : additive) (n : Z) : Z :=
  let b := n / period a + reach a + 1 in
  let i := n mod period a in
  let shape := if reach a + 1 <=? b then above a else below a in
  total (firstn (Z.to_nat b) (blocks a)) * 2 ^ a_bits a
  + at_ (blocks a) b * total (firstn (Z.to_nat (i + 1)) shape).

Definition weights_fill (B : Z) (l : list Z) : bool :=
  forallb (fun x => 1 <=? x) l && (total l =? 2 ^ B).

Definition additive_is_drawn (a : additive) : bool :=
  let D := period a in
  let J := reach a in
  (1 <=? a_bits a) && (a_bits a <=? 64) && (2 <=? labels a) && (1 <=? spacing a) &&
  (1 <=? J) && (Z.of_nat (length (blocks a)) =? 2 * J + 2) &&
  (Z.of_nat (length (below a)) =? D) && (Z.of_nat (length (above a)) =? D) &&
  weights_fill (a_bits a) (blocks a) && weights_fill (a_bits a) (below a) &&
  weights_fill (a_bits a) (above a) &&
  (D - J * D <=? low a) && (low a <=? high a) && (high a <=? J * D).

Definition additive_ratio (num den : Z) (a : additive) : bool :=
  let D := period a in
  let J := Z.to_nat (reach a) in
  let lower := firstn J (skipn 1 (blocks a)) in
  let upper := firstn J (skipn (S J) (blocks a)) in
  let all := 2 ^ a_bits a * 2 ^ a_bits a in
  (den <=? num) &&
  (den * largest (below a) <=? num * least (below a)) &&
  (den * largest (above a) <=? num * least (above a)) &&
  neighbours_within num den lower (below a) (below a) &&
  neighbours_within num den upper (above a) (above a) &&
  neighbours_within num den (firstn 2 (skipn J (blocks a))) (below a) (above a) &&
  (den * noise_upto a (low a) <=? num * noise_upto a (low a - D)) &&
  (den * (all - noise_upto a (high a - 1 - D)) <=? num * (all - noise_upto a (high a - 1)))
  .

Definition additive_check (num den : Z) (a : additive) : bool :=
  (0 <? den) && additive_is_drawn a && additive_ratio num den a.

(** The alias tables of a file have these weights. *)
Definition same (l k : list Z) : bool :=
  (Z.of_nat (length l) =? Z.of_nat (length k))
  && forallb (fun p => fst p =? snd p) (combine l k).

Definition sampled_by (B c : Z) (entries l : list Z) : bool :=
  let m := Z.of_nat (length l) in
  alias_is_drawn B c m entries && same (first_weights B c m entries) l.

Definition additive_file_check (num den : Z) (a : additive) (c d : Z)
    (block_entries below_entries above_entries : list Z) : bool :=
  sampled_by (a_bits a) c block_entries (blocks a) &&
  sampled_by (a_bits a) d below_entries (below a) &&
  sampled_by (a_bits a) d above_entries (above a) &&
  additive_check num den a.

(** * A ratio and its epsilon *)

(** (A, D, P) with A / D the sum and P / D the last term of [exp_lower (p # q) n], in integers. *)
Fixpoint exp_sums (p q : Z) (n : nat) : Z * Z * Z :=
  match n with
  | O => (1, 1, 1)
  | S m =>
      match exp_sums p q m with
      | (A, D, P) =>
          let f := q * Z.of_nat n in
          let P' := P * p in
          (A * f + P', D * f, P')
      end
  end.

Definition epsilon_check (num den : Z) (e : Q) (n : nat) : bool :=
  match exp_sums (Qnum e) (Zpos (Qden e)) n with
  | (A, D, _) => (0 <? den) && (0 <=? Qnum e) && (num * D <=? A * den)
  end.
