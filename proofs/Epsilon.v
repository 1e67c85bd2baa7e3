(** From a ratio of integers to epsilon: partial sums of the exponential series. *)

From Coq Require Import ZArith List Lia Bool QArith.
From LabelDP Require Import Draw Check.
Import ListNotations.
Open Scope Z_scope.

Lemma exp_sums_spec (e : Q) n : forall A D P,
  exp_sums (Qnum e) (Zpos (Qden e)) n = (A, D, P) ->
  0 < D /\ (exp_term e n * inject_Z D == inject_Z P)%Q /\
  (exp_lower e n * inject_Z D == inject_Z A)%Q.
Proof.
  assert (E : (e * inject_Z (Zpos (Qden e)) == inject_Z (Qnum e))%Q).
  { destruct e as [p q]. unfold Qeq, inject_Z, Qmult. cbn. lia. }
  induction n as [|n IH]; intros A D P.
  - cbn. intros H. inversion H. repeat split; reflexivity.
  - cbn [exp_sums]. destruct (exp_sums (Qnum e) (Zpos (Qden e)) n) as [[A0 D0] P0].
    intros H. inversion H; subst; clear H.
    destruct (IH A0 D0 P0 eq_refl) as (H0 & HP & HA). clear IH.
    cbn [exp_lower exp_term].
    set (k := inject_Z (Z.of_nat (S n))).
    assert (K : ~ (k == 0)%Q) by (unfold k, Qeq, inject_Z; cbn; lia).
    assert (T : (exp_term e n * (e / k) * inject_Z (D0 * (Zpos (Qden e) * Z.of_nat (S n)))
                 == inject_Z (P0 * Qnum e))%Q).
    { rewrite !inject_Z_mult. fold k. rewrite <- HP, <- E. field. exact K. }
    split; [|split].
    + apply Z.mul_pos_pos; [auto|]. lia.
    + exact T.
    + rewrite Qmult_plus_distr_l, T, inject_Z_plus. apply Qplus_comp; [|reflexivity].
      rewrite !inject_Z_mult, <- HA. ring.
Qed.

Lemma epsilon_check_le num den e n :
  epsilon_check num den e n = true ->
  0 < den /\ (0 <= e)%Q /\ (inject_Z num / inject_Z den <= exp_lower e n)%Q.
Proof.
  unfold epsilon_check. destruct (exp_sums (Qnum e) (Zpos (Qden e)) n) as [[A D] P] eqn:E.
  rewrite !andb_true_iff, Z.ltb_lt, !Z.leb_le. intros [[Hd He] H].
  destruct (exp_sums_spec e n A D P E) as (HD & _ & HA).
  split; [auto|]. split; [unfold Qle; cbn; lia|].
  assert (Pd : (0 < inject_Z den)%Q) by (unfold Qlt, inject_Z; cbn; lia).
  assert (PD : (0 < inject_Z D)%Q) by (unfold Qlt, inject_Z; cbn; lia).
  apply Qle_shift_div_r; [exact Pd|].
  apply Qmult_lt_0_le_reg_r with (inject_Z D); [exact PD|].
  setoid_replace (exp_lower e n * inject_Z den * inject_Z D)%Q
    with (exp_lower e n * inject_Z D * inject_Z den)%Q by ring.
  rewrite HA, <- !inject_Z_mult. rewrite <- Zle_Qle. exact H.
Qed.

Theorem epsilon_private_proof {Y W O} num den e n (label : Y -> Prop) (ws : list W) (out : Y -> W -> O) :
  epsilon_check num den e n = true -> private num den label ws out ->
  epsilon_private e label ws out.
Proof.
  intros H Hp. apply epsilon_check_le in H. exists num, den, n. tauto.
Qed.
