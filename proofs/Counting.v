(** Lemmas on counting: sums over words, and the step from single outputs to sets of outputs. *)

From Coq Require Import ZArith List Lia Bool FinFun.
From LabelDP Require Import Draw.
Import ListNotations.
Open Scope Z_scope.

Definition b2z (b : bool) : Z := if b then 1 else 0.

Fixpoint sum {A : Type} (f : A -> Z) (l : list A) : Z :=
  match l with
  | [] => 0
  | x :: rest => f x + sum f rest
  end.

Lemma sum_app {A} (f : A -> Z) l k : sum f (l ++ k) = sum f l + sum f k.
Proof. induction l; simpl; lia. Qed.

Lemma sum_map {A B} (f : B -> Z) (g : A -> B) l : sum f (map g l) = sum (fun x => f (g x)) l.
Proof. induction l; simpl; auto. rewrite IHl. reflexivity. Qed.

Lemma sum_ext {A} (f g : A -> Z) l : (forall x, In x l -> f x = g x) -> sum f l = sum g l.
Proof.
  induction l; simpl; intros H; auto.
  rewrite H by auto. rewrite IHl; auto.
Qed.

Lemma sum_le {A} (f g : A -> Z) l : (forall x, In x l -> f x <= g x) -> sum f l <= sum g l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [lia|].
  pose proof (H x (or_introl eq_refl)). assert (sum f l <= sum g l) by auto. lia.
Qed.

Lemma sum_plus {A} (f g : A -> Z) l : sum (fun x => f x + g x) l = sum f l + sum g l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_scale {A} c (f : A -> Z) l : sum (fun x => c * f x) l = c * sum f l.
Proof. induction l; simpl; lia. Qed.

Lemma sum_const {A} c (l : list A) : sum (fun _ => c) l = c * Z.of_nat (length l).
Proof. induction l; cbn [sum length]; lia. Qed.

Lemma sum_nonneg {A} (f : A -> Z) l : (forall x, In x l -> 0 <= f x) -> 0 <= sum f l.
Proof.
  induction l as [|x l IH]; simpl; intros H; [lia|].
  pose proof (H x (or_introl eq_refl)). assert (0 <= sum f l) by auto. lia.
Qed.

Lemma sum_swap {A B} (f : A -> B -> Z) l k :
  sum (fun a => sum (f a) k) l = sum (fun b => sum (fun a => f a b) l) k.
Proof.
  induction l; simpl.
  - induction k; simpl; lia.
  - rewrite IHl, <- sum_plus. reflexivity.
Qed.

Lemma sum_flat_map {A B} (f : B -> Z) (g : A -> list B) l :
  sum f (flat_map g l) = sum (fun a => sum f (g a)) l.
Proof. induction l; simpl; auto. rewrite sum_app. lia. Qed.

Lemma sum_prod {A B} (f : A * B -> Z) l k :
  sum f (list_prod l k) = sum (fun a => sum (fun b => f (a, b)) k) l.
Proof.
  induction l; simpl; auto. rewrite sum_app, sum_map. lia.
Qed.

Lemma total_sum l : total l = sum (fun x => x) l.
Proof. induction l; simpl; lia. Qed.

Lemma count_sum {W} (ws : list W) P : count ws P = sum (fun w => b2z (P w)) ws.
Proof.
  unfold count. induction ws; cbn [filter sum]; auto.
  destruct (P a); cbn [length b2z]; lia.
Qed.

Lemma count_ext {W} (ws : list W) P Q :
  (forall w, In w ws -> P w = Q w) -> count ws P = count ws Q.
Proof. intros H. rewrite !count_sum. apply sum_ext. intros. rewrite H; auto. Qed.

Lemma count_nonneg {W} (ws : list W) P : 0 <= count ws P.
Proof. unfold count. lia. Qed.

(** * Sums over 0 ... n - 1 *)

Definition range (n : nat) : list Z := map Z.of_nat (seq 0 n).

Lemma range_S n : range (S n) = range n ++ [Z.of_nat n].
Proof. unfold range. rewrite seq_S, map_app. reflexivity. Qed.

Lemma in_range_iff n x : In x (range n) <-> 0 <= x < Z.of_nat n.
Proof.
  unfold range. rewrite in_map_iff. split.
  - intros (m & <- & H). apply in_seq in H. lia.
  - intros H. exists (Z.to_nat x). split; [lia|]. apply in_seq. lia.
Qed.

Lemma in_upto n x : In x (upto n) <-> 0 <= x < n.
Proof. unfold upto. fold (range (Z.to_nat n)). rewrite in_range_iff. lia. Qed.

Lemma upto_range n : upto (Z.of_nat n) = range n.
Proof. unfold upto, range. rewrite Nat2Z.id. reflexivity. Qed.

Lemma in_words B x : In x (words B) <-> 0 <= x < 2 ^ B.
Proof. exact (in_upto (2 ^ B) x). Qed.

Lemma length_upto n : 0 <= n -> Z.of_nat (length (upto n)) = n.
Proof. intros. unfold upto. rewrite map_length, seq_length. lia. Qed.

Lemma nodup_upto n : NoDup (upto n).
Proof.
  unfold upto. apply Injective_map_NoDup; [|apply seq_NoDup].
  intros x y. lia.
Qed.

(** Where each term is a difference, the sum is that of the ends. *)
Lemma sum_telescope (f F : Z -> Z) n :
  0 <= n -> (forall u, 0 <= u < n -> f u = F (u + 1) - F u) -> sum f (upto n) = F n - F 0.
Proof.
  intros Hn. rewrite <- (Z2Nat.id n) by lia. rewrite upto_range.
  induction (Z.to_nat n) as [|m IH]; intros H.
  - change (Z.of_nat 0) with 0. unfold range; simpl; lia.
  - rewrite range_S, sum_app, IH by (intros; apply H; lia).
    cbn [sum]. rewrite H by lia. replace (Z.of_nat (S m)) with (Z.of_nat m + 1) by lia. lia.
Qed.

Lemma seq_moved k m : seq k m = map (fun i => (k + i)%nat) (seq 0 m).
Proof.
  induction m as [|m IH]; auto. rewrite !seq_S, map_app, IH. reflexivity.
Qed.

Lemma upto_add a b : 0 <= a -> 0 <= b -> upto (a + b) = upto a ++ map (Z.add a) (upto b).
Proof.
  intros. unfold upto. rewrite Z2Nat.inj_add by lia.
  rewrite seq_app, map_app. f_equal. rewrite seq_moved, !map_map.
  apply map_ext_in. intros x Hx. apply in_seq in Hx. lia.
Qed.

(** n * m words, m columns of n words each: word h * m + j is number h of column j. *)
Lemma sum_columns (f : Z -> Z) n m :
  0 <= n -> 0 <= m ->
  sum f (upto (n * m)) = sum (fun j => sum (fun h => f (h * m + j)) (upto n)) (upto m).
Proof.
  intros Hn Hm. rewrite sum_swap.
  rewrite <- (Z2Nat.id n) by lia. rewrite (upto_range (Z.to_nat n)).
  induction (Z.to_nat n) as [|k IH].
  - reflexivity.
  - rewrite range_S, sum_app, <- IH. cbn [sum]. rewrite Z.add_0_r.
    replace (Z.of_nat (S k) * m) with (Z.of_nat k * m + m) by lia.
    rewrite upto_add by lia. rewrite sum_app, sum_map. reflexivity.
Qed.

Lemma words_upto B : words B = upto (2 ^ B).
Proof. reflexivity. Qed.

(** Nobody computes lists of 2^64 words. *)
Global Opaque upto words.

(** Only the highest bits of a word count: 2^(64 - B) words share them. *)
Lemma sum_high_bits (f : Z -> Z) B :
  0 <= B <= 64 ->
  sum (fun w => f (high_bits B w)) (words 64) = 2 ^ (64 - B) * sum f (words B).
Proof.
  intros HB. rewrite !words_upto.
  replace (2 ^ 64) with (2 ^ B * 2 ^ (64 - B)) by (rewrite <- Z.pow_add_r by lia; f_equal; lia).
  assert (0 < 2 ^ (64 - B)) by (apply Z.pow_pos_nonneg; lia).
  assert (0 < 2 ^ B) by (apply Z.pow_pos_nonneg; lia).
  rewrite sum_columns by lia.
  rewrite (sum_ext _ (fun _ => sum f (upto (2 ^ B)))).
  - rewrite sum_const, length_upto by lia. lia.
  - intros j Hj. apply in_upto in Hj. apply sum_ext. intros h Hh. f_equal.
    unfold high_bits. rewrite Z.shiftr_div_pow2 by lia.
    rewrite Z.div_add_l by lia. rewrite Z.div_small by lia. lia.
Qed.

Lemma high_bits_range B w : 0 <= B <= 64 -> In w (words 64) -> 0 <= high_bits B w < 2 ^ B.
Proof.
  intros HB Hw. pose proof (proj1 (in_words 64 w) Hw) as Hr. clear Hw. unfold high_bits. rewrite Z.shiftr_div_pow2 by lia.
  assert (0 < 2 ^ (64 - B)) by (apply Z.pow_pos_nonneg; lia).
  split; [apply Z.div_pos; lia|]. apply Z.div_lt_upper_bound; [lia|].
  rewrite <- Z.pow_add_r by lia. replace (64 - B + B) with 64 by lia. lia.
Qed.

(** * From single outputs to sets of outputs *)

Lemma sum_pick (os : list Z) (x : Z) (f : Z -> Z) :
  NoDup os -> In x os -> sum (fun o => f o * b2z (x =? o)) os = f x.
Proof.
  induction os as [|o os IH]; cbn [sum In]; intros Hn Hi; [easy|].
  inversion Hn as [|? ? Hnot Hn']; subst.
  destruct (Z.eqb_spec x o) as [->|Hne].
  - rewrite (sum_ext _ (fun _ => 0)).
    + rewrite sum_const. cbn [b2z]. lia.
    + intros y Hy. destruct (Z.eqb_spec o y); [subst; contradiction|]. cbn [b2z]. lia.
  - destruct Hi as [Hi|Hi]; [subst; easy|]. rewrite IH by auto. cbn [b2z]. lia.
Qed.

Lemma count_of_set {W} (ws : list W) (f : W -> Z) (os : list Z) (S : Z -> bool) :
  NoDup os -> (forall w, In w ws -> In (f w) os) ->
  count ws (fun w => S (f w)) = sum (fun o => b2z (S o) * count ws (fun w => f w =? o)) os.
Proof.
  intros Hn Hi. rewrite count_sum.
  rewrite (sum_ext _ (fun o => sum (fun w => b2z (S o) * b2z (f w =? o)) ws)).
  - rewrite <- sum_swap. apply sum_ext. intros w Hw.
    rewrite (sum_pick os (f w) (fun o => b2z (S o))) by auto. reflexivity.
  - intros o _. rewrite count_sum, sum_scale. reflexivity.
Qed.

Lemma private_of_points {Y W} num den (label : Y -> Prop) (ws : list W) (out : Y -> W -> Z) (os : list Z) :
  NoDup os ->
  (forall y w, label y -> In w ws -> In (out y w) os) ->
  (forall y y' o, label y -> label y' -> In o os ->
     den * count ws (fun w => out y w =? o) <= num * count ws (fun w => out y' w =? o)) ->
  private num den label ws out.
Proof.
  intros Hn Hi Hp y y' Hy Hy' S.
  rewrite !(count_of_set ws _ os) by auto.
  rewrite <- !sum_scale. apply sum_le. intros o Ho.
  specialize (Hp y y' o Hy Hy' Ho). destruct (S o); cbn [b2z]; lia.
Qed.

Lemma in_prod_words {A B} (l : list A) (k : list B) p :
  In p (list_prod l k) <-> In (fst p) l /\ In (snd p) k.
Proof. destruct p. apply in_prod_iff. Qed.
