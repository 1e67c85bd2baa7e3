(** Real labels that are rounded at random, and several labels of one person. *)

From Coq Require Import ZArith List Lia Bool QArith.
From LabelDP Require Import Draw Check Counting.
Import ListNotations.
Open Scope Z_scope.

Lemma count_prod {A B} (l : list A) (k : list B) P :
  count (list_prod l k) P = sum (fun b => count l (fun a => P (a, b))) k.
Proof.
  rewrite count_sum, sum_prod, sum_swap. apply sum_ext. intros b _. rewrite count_sum. reflexivity.
Qed.

Theorem mixed_private_proof {Y W O} num den (label : Y -> Prop) (ws : list W) (out : Y -> W -> O) rs :
  private num den label ws out ->
  private num den (fun f => forall r, label (f r)) (list_prod ws rs) (mixed out).
Proof.
  intros H f f' Hf Hf' S. rewrite !count_prod, <- !sum_scale. apply sum_le.
  intros r _. exact (H (f r) (f' r) (Hf r) (Hf' r) S).
Qed.

Theorem rounded_private_proof {W O} num den k (ws : list W) (out : Z -> W -> O) :
  private num den (row k) ws out ->
  private num den
    (fun p => row k (fst p) /\ (row k (fst p + 1) \/ snd p <= 0)) (list_prod ws (words 64))
    (fun p => mixed out (rounded (fst p) (snd p))).
Proof.
  intros H p p' Hp Hp' S. rewrite !count_prod, <- !sum_scale. apply sum_le.
  assert (R : forall q r, row k (fst q) /\ (row k (fst q + 1) \/ snd q <= 0) -> In r (words 64) ->
    row k (rounded (fst q) (snd q) r)).
  { intros q r [H1 H2] Hr. pose proof (proj1 (in_words 64 r) Hr) as Hw. clear Hr. unfold rounded.
    assert (0 <= Z.shiftr r 11) by (apply Z.shiftr_nonneg; lia).
    destruct (Z.ltb_spec (Z.shiftr r 11) (snd q)); [|rewrite Z.add_0_r; auto].
    destruct H2; [auto|lia]. }
  intros r Hr. exact (H _ _ (R p r Hp Hr) (R p' r Hp' Hr) S).
Qed.

Lemma count_flat_map {A B} (f : A -> list B) l P :
  count (flat_map f l) P = sum (fun a => count (f a) P) l.
Proof.
  rewrite count_sum, sum_flat_map. apply sum_ext. intros. rewrite count_sum. reflexivity.
Qed.

Lemma count_map {A B} (f : A -> B) l P : count (map f l) P = count l (fun a => P (f a)).
Proof. rewrite !count_sum, sum_map. reflexivity. Qed.

Theorem tuples_private_proof {Y W O} num den (label : Y -> Prop) (ws : list W) (out : Y -> W -> O) n :
  0 <= den -> 0 <= num ->
  private num den label ws out ->
  private (num ^ Z.of_nat n) (den ^ Z.of_nat n) (fun ys => length ys = n /\ forall y, In y ys -> label y)
    (tuples n ws) (drawn_all out).
Proof.
  intros Hd Hn H. induction n as [|n IH]; intros ys ys' [L Hy] [L' Hy'] S.
  - destruct ys, ys'; try discriminate. cbn [tuples]. lia.
  - destruct ys as [|y t], ys' as [|y' t']; try discriminate.
    cbn [tuples]. rewrite !count_flat_map.
    assert (E : forall z s, sum (fun w => count (map (cons w) (tuples n ws)) (fun v => S (drawn_all out (z :: s) v))) ws
                = sum (fun w => count (tuples n ws) (fun v => S (out z w :: drawn_all out s v))) ws).
    { intros z s. apply sum_ext. intros w _. rewrite count_map. reflexivity. }
    rewrite !E.
    set (f := fun z s => sum (fun w => count (tuples n ws) (fun v => S (out z w :: drawn_all out s v))) ws).
    change (den ^ Z.of_nat (Datatypes.S n) * f y t <= num ^ Z.of_nat (Datatypes.S n) * f y' t').
    rewrite Nat2Z.inj_succ, !Z.pow_succ_r by lia.
    assert (A : den ^ Z.of_nat n * f y t <= num ^ Z.of_nat n * f y t').
    { unfold f. rewrite <- !sum_scale. apply sum_le. intros w _.
      apply (IH t t') with (S := fun os => S (out y w :: os));
        (split; [cbn [length] in *; lia|]); intros z Hz; [apply Hy|apply Hy']; right; auto. }
    assert (B : den * f y t' <= num * f y' t').
    { assert (F : forall z, f z t' = sum (fun v => count ws (fun w => S (out z w :: drawn_all out t' v))) (tuples n ws)).
      { intros z. unfold f. rewrite (sum_ext _ (fun w => sum (fun v => b2z (S (out z w :: drawn_all out t' v))) (tuples n ws)))
          by (intros; apply count_sum).
        rewrite sum_swap. apply sum_ext. intros. rewrite count_sum. reflexivity. }
      rewrite !F, <- !sum_scale. apply sum_le. intros v _.
      apply (H y y' (Hy y (or_introl eq_refl)) (Hy' y' (or_introl eq_refl))
               (fun o => S (o :: drawn_all out t' v))). }
    assert (0 <= num ^ Z.of_nat n) by (apply Z.pow_nonneg; auto).
    nia.
Qed.

