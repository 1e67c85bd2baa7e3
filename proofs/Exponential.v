(** About the real exponential function: partial sums are lower bounds of it.

    This file alone uses the library's real numbers, which rest on three assumptions of their own
    (Print Assumptions lists them: two decisions of classical logic, and functional
    extensionality). No other file needs it. *)

From Coq Require Import Reals QArith Qreals Lra Lia ZArith List.
From LabelDP Require Import Draw.
Import ListNotations.
Open Scope R_scope.

Lemma term_is (e : Q) n : Q2R (exp_term e n) = / INR (fact n) * Q2R e ^ n.
Proof.
  induction n as [|n IH].
  - cbn. unfold Q2R. cbn. lra.
  - cbn [exp_term]. rewrite Q2R_mult, IH.
    assert (K : ~ (inject_Z (Z.of_nat (S n)) == 0)%Q) by (unfold Qeq, inject_Z; cbn; lia).
    rewrite Q2R_div by exact K.
    assert (E : Q2R (inject_Z (Z.of_nat (S n))) = INR (S n)).
    { unfold Q2R, inject_Z. cbn [Qnum Qden]. rewrite <- INR_IZR_INZ. field. }
    rewrite E, fact_simpl, mult_INR. rewrite <- tech_pow_Rmult. field.
    split; [apply INR_fact_neq_0|apply not_0_INR; lia].
Qed.

Lemma sum_is (e : Q) n : Q2R (exp_lower e n) = sum_f_R0 (fun i => / INR (fact i) * Q2R e ^ i) n.
Proof.
  induction n as [|n IH].
  - cbn. unfold Q2R. cbn. lra.
  - cbn [exp_lower]. rewrite Q2R_plus, IH, term_is. reflexivity.
Qed.

Theorem exp_lower_is_lower : forall (e : Q) n, (0 <= e)%Q -> Q2R (exp_lower e n) <= exp (Q2R e).
Proof.
  intros e n He. rewrite sum_is. apply sum_incr.
  - unfold exp. destruct (exist_exp (Q2R e)) as [l Hl]. exact Hl.
  - intros i. apply Rmult_le_pos.
    + apply Rlt_le, Rinv_0_lt_compat, INR_fact_lt_0.
    + apply pow_le. rewrite <- RMicromega.Q2R_0. apply Qle_Rle. exact He.
Qed.

(** What epsilon_private means in real numbers: e^epsilon, and nothing of partial sums. *)
Theorem epsilon_private_in_reals : forall (Y W O : Type) (e : Q) (label : Y -> Prop) (ws : list W)
    (out : Y -> W -> O),
  epsilon_private e label ws out ->
  forall y y', label y -> label y' -> forall S : O -> bool,
  IZR (count ws (fun w => S (out y w))) <= exp (Q2R e) * IZR (count ws (fun w => S (out y' w))).
Proof.
  intros Y W O e label ws out (num & den & n & Hd & He & Hr & Hp) y y' Hy Hy' S.
  specialize (Hp y y' Hy Hy' S).
  set (c := count ws (fun w => S (out y w))) in *. set (c' := count ws (fun w => S (out y' w))) in *.
  assert (C' : (0 <= c')%Z) by (unfold c', count; lia).
  assert (R : IZR num / IZR den <= exp (Q2R e)).
  { apply Rle_trans with (Q2R (exp_lower e n)); [|apply exp_lower_is_lower; exact He].
    apply Qle_Rle in Hr. rewrite Q2R_div in Hr by (unfold Qeq, inject_Z; cbn; lia).
    unfold Q2R at 1 2 in Hr. cbn [inject_Z Qnum Qden] in Hr. rewrite Rinv_1, !Rmult_1_r in Hr. exact Hr. }
  apply IZR_le in Hp. rewrite !mult_IZR in Hp. apply IZR_lt in Hd. apply IZR_le in C'.
  apply Rmult_le_reg_l with (IZR den); [exact Hd|].
  apply Rle_trans with (IZR num * IZR c'); [exact Hp|].
  replace (IZR num * IZR c') with (IZR den * (IZR num / IZR den * IZR c')) by (field; lra).
  apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; [exact C'|exact R].
Qed.

(** n labels of one person: e^(n * epsilon). *)
Theorem powers_in_reals : forall num den e n (k : nat),
  (0 < den)%Z -> (0 <= num)%Z -> (0 <= e)%Q ->
  (inject_Z num / inject_Z den <= exp_lower e n)%Q ->
  IZR (num ^ Z.of_nat k) / IZR (den ^ Z.of_nat k) <= exp (INR k * Q2R e).
Proof.
  intros num den e n k Hd Hn He Hr.
  assert (R : IZR num / IZR den <= exp (Q2R e)).
  { apply Rle_trans with (Q2R (exp_lower e n)); [|apply exp_lower_is_lower; exact He].
    apply Qle_Rle in Hr. rewrite Q2R_div in Hr by (unfold Qeq, inject_Z; cbn; lia).
    unfold Q2R at 1 2 in Hr. cbn [inject_Z Qnum Qden] in Hr. rewrite Rinv_1, !Rmult_1_r in Hr. exact Hr. }
  apply IZR_lt in Hd. apply IZR_le in Hn.
  rewrite <- !pow_IZR. induction k as [|k IH].
  - cbn. rewrite Rmult_0_l, exp_0. lra.
  - rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, <- !tech_pow_Rmult.
    assert (0 < IZR den ^ k) by (apply pow_lt; exact Hd).
    replace (IZR num * IZR num ^ k / (IZR den * IZR den ^ k))
      with (IZR num ^ k / IZR den ^ k * (IZR num / IZR den)) by (field; split; lra).
    apply Rmult_le_compat; auto.
    + apply Rmult_le_pos; [apply pow_le; exact Hn|]. apply Rlt_le, Rinv_0_lt_compat. exact H.
    + apply Rmult_le_pos; [exact Hn|]. apply Rlt_le, Rinv_0_lt_compat. exact Hd.
Qed.
