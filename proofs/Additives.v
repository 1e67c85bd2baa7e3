(** Additive noise is private, clamped ends included. *)

From Coq Require Import ZArith List Lia Bool FinFun.
From LabelDP Require Import Draw Check Counting Lines Windows Tables Noise.
Import ListNotations.
Open Scope Z_scope.

Lemma sum_pushforward {W} (ws : list W) (h : W -> Z) (m : Z) (g : Z -> Z) :
  (forall w, In w ws -> 0 <= h w < m) ->
  sum (fun w => g (h w)) ws = sum (fun o => g o * count ws (fun w => h w =? o)) (upto m).
Proof.
  intros H.
  rewrite (sum_ext (fun o => g o * _) (fun o => sum (fun w => g o * b2z (h w =? o)) ws)).
  - rewrite <- sum_swap. apply sum_ext. intros w Hw. symmetry.
    apply sum_pick; [apply nodup_upto|]. apply in_upto. auto.
  - intros o _. rewrite count_sum, sum_scale. reflexivity.
Qed.

Lemma total_firstn_S l i :
  0 <= i < Z.of_nat (length l) ->
  total (firstn (Z.to_nat (i + 1)) l) = total (firstn (Z.to_nat i) l) + at_ l i.
Proof.
  intros H. unfold at_. replace (Z.to_nat (i + 1)) with (S (Z.to_nat i)) by lia.
  assert (K : (Z.to_nat i < length l)%nat) by lia. generalize dependent (Z.to_nat i). clear.
  induction l as [|x l IH]; intros [|n] K; cbn [length] in K; try lia.
  - cbn. lia.
  - specialize (IH n ltac:(lia)). cbn [firstn nth] in *. unfold total in *. cbn [fold_right]. lia.
Qed.

Lemma firstn_all_total l n : Z.of_nat (length l) <= n -> total (firstn (Z.to_nat n) l) = total l.
Proof. intros. rewrite firstn_all2 by lia. reflexivity. Qed.

Lemma at_firstn_skipn l (n k : nat) i :
  0 <= i < Z.of_nat n -> at_ (firstn n (skipn k l)) i = at_ l (Z.of_nat k + i).
Proof.
  intros H. rewrite <- (Nat2Z.id n), at_firstn by lia.
  rewrite <- (Nat2Z.id k) at 1. rewrite at_skipn by lia. reflexivity.
Qed.

Lemma ones_firstn n l : ones l -> ones (firstn n l).
Proof. intros H x Hx. apply H. rewrite <- (firstn_skipn n l). apply in_or_app. auto. Qed.

Lemma ones_skipn n l : ones l -> ones (skipn n l).
Proof. intros H x Hx. apply H. rewrite <- (firstn_skipn n l). apply in_or_app. auto. Qed.

Record noise_is_drawn (a : additive) : Prop := {
  n_bits : 1 <= a_bits a <= 64;
  n_labels : 2 <= labels a;
  n_spacing : 1 <= spacing a;
  n_reach : 1 <= reach a;
  n_blocks : Z.of_nat (length (blocks a)) = 2 * reach a + 2;
  n_below : Z.of_nat (length (below a)) = period a;
  n_above : Z.of_nat (length (above a)) = period a;
  n_ones_blocks : ones (blocks a);
  n_ones_below : ones (below a);
  n_ones_above : ones (above a);
  n_total_blocks : total (blocks a) = 2 ^ a_bits a;
  n_total_below : total (below a) = 2 ^ a_bits a;
  n_total_above : total (above a) = 2 ^ a_bits a;
  n_low : period a - reach a * period a <= low a;
  n_ends : low a <= high a;
  n_high : high a <= reach a * period a }.

Lemma weights_fill_iff B l : weights_fill B l = true <-> ones l /\ total l = 2 ^ B.
Proof.
  unfold weights_fill, ones. rewrite andb_true_iff, Z.eqb_eq, forallb_in.
  split; intros [H E]; split; auto; intros x Hx; specialize (H x Hx); lia.
Qed.

Lemma additive_is_drawn_iff a : additive_is_drawn a = true <-> noise_is_drawn a.
Proof.
  unfold additive_is_drawn. rewrite !andb_true_iff, !Z.leb_le, !Z.eqb_eq, !weights_fill_iff.
  split.
  - intros H. repeat match goal with K : _ /\ _ |- _ => destruct K end. constructor; auto.
  - intros []. repeat split; auto; lia.
Qed.

Section Additive.
  Variable a : additive.
  Hypothesis D : noise_is_drawn a.
  Variable num den : Z.
  Hypothesis Hden : 0 < den.
  Hypothesis Hratio : additive_ratio num den a = true.

  Let P := period a.
  Let J := reach a.
  Let K := (J + 1) * P.
  Let N := 2 ^ a_bits a.
  Let shape (up : bool) : list Z := if up then above a else below a.

  Lemma P_pos : 1 <= P.
  Proof. unfold P, period. pose proof (n_labels a D). pose proof (n_spacing a D). nia. Qed.

  Lemma N_pos : 0 < N.
  Proof. apply Z.pow_pos_nonneg; pose proof (n_bits a D); lia. Qed.

  Lemma shape_length up : Z.of_nat (length (shape up)) = P.
  Proof. destruct up; [apply (n_above a D)|apply (n_below a D)]. Qed.

  Lemma shape_total up : total (shape up) = N.
  Proof. destruct up; [apply (n_total_above a D)|apply (n_total_below a D)]. Qed.

  Lemma shape_ones up : ones (shape up).
  Proof. destruct up; [apply (n_ones_above a D)|apply (n_ones_below a D)]. Qed.

  (** The weight of the noise x - K, for x from 0 to 2K - 1. *)
  Definition weight (x : Z) : Z :=
    at_ (blocks a) (x / P) * at_ (shape (J + 1 <=? x / P)) (x mod P).

  Lemma block_range x : 0 <= x < 2 * K -> 0 <= x / P < 2 * J + 2.
  Proof.
    intros Hx. pose proof P_pos. split; [apply Z.div_pos; lia|].
    apply Z.div_lt_upper_bound; [lia|]. unfold K in Hx. lia.
  Qed.

  Lemma block_one b : 0 <= b < 2 * J + 2 -> 1 <= at_ (blocks a) b.
  Proof. intros. apply (n_ones_blocks a D), at_in. rewrite (n_blocks a D). auto. Qed.

  Lemma place_one up i : 0 <= i < P -> 1 <= at_ (shape up) i.
  Proof. intros. apply (shape_ones up (at_ (shape up) i)), at_in. rewrite shape_length. auto. Qed.

  Lemma weight_pos x : 0 <= x < 2 * K -> 0 < weight x.
  Proof.
    intros Hx. unfold weight. pose proof P_pos. pose proof (Z.mod_pos_bound x P ltac:(lia)) as M.
    pose proof (block_one _ (block_range x Hx)). pose proof (place_one (J + 1 <=? x / P) _ M). nia.
  Qed.

  (** Sums of weights. *)
  Definition upto_noise (x : Z) : Z := if x <=? 0 then 0 else noise_upto a (x - 1 - K).

  Lemma noise_upto_eq x :
    noise_upto a (x - K) =
    total (firstn (Z.to_nat (x / P)) (blocks a)) * N
    + at_ (blocks a) (x / P) * total (firstn (Z.to_nat (x mod P + 1)) (shape (J + 1 <=? x / P))).
  Proof.
    pose proof P_pos. unfold noise_upto. fold P N J.
    assert (E1 : (x - K) / P + J + 1 = x / P).
    { replace (x - K) with (x + (- (J + 1)) * P) by (unfold K; lia). rewrite Z.div_add by lia. lia. }
    assert (E2 : (x - K) mod P = x mod P).
    { replace (x - K) with (x + (- (J + 1)) * P) by (unfold K; lia). apply Z.mod_add. lia. }
    rewrite E1, E2. reflexivity.
  Qed.

  Lemma upto_noise_step x : 0 <= x < 2 * K -> weight x = upto_noise (x + 1) - upto_noise x.
  Proof.
    intros Hx. pose proof P_pos. unfold upto_noise.
    destruct (Z.leb_spec (x + 1) 0); [lia|].
    replace (x + 1 - 1 - K) with (x - K) by lia. rewrite noise_upto_eq.
    pose proof (Z.mod_pos_bound x P ltac:(lia)) as M. pose proof (Z.div_mod x P ltac:(lia)) as E.
    pose proof (block_range x Hx) as Bx.
    rewrite total_firstn_S by (rewrite shape_length; lia).
    unfold weight.
    destruct (Z.leb_spec x 0).
    - assert (x = 0) as -> by lia. rewrite Z.div_0_l, Z.mod_0_l by lia. cbn [Z.to_nat firstn].
      change (Z.to_nat 0) with 0%nat. cbn [firstn]. change (total []) with 0. lia.
    - replace (x - 1 - K) with ((x - 1) - K) by lia. rewrite noise_upto_eq.
      destruct (Z.eq_dec (x mod P) 0) as [Z0|Z0].
      + assert (F : (x - 1) / P = x / P - 1 /\ (x - 1) mod P = P - 1).
        { assert (x - 1 = P * (x / P - 1) + (P - 1)) by lia.
          split; symmetry; [eapply Z.div_unique|eapply Z.mod_unique]; try eassumption; left; lia. }
        destruct F as [F1 F2]. rewrite F1, F2, Z0.
        replace (P - 1 + 1) with P by lia.
        rewrite (firstn_all_total _ P) by (rewrite shape_length; lia). rewrite shape_total.
        assert (B1 : 1 <= x / P).
        { destruct (Z.leb_spec 1 (x / P)); auto. assert (x / P = 0) by lia. nia. }
        replace (Z.to_nat (x / P)) with (Z.to_nat (x / P - 1 + 1)) by (f_equal; lia).
        rewrite total_firstn_S by (rewrite (n_blocks a D); fold J; lia).
        change (Z.to_nat 0) with 0%nat. cbn [firstn]. change (total []) with 0.
        replace (x / P - 1 + 1) with (x / P) by lia. lia.
      + assert (F : (x - 1) / P = x / P /\ (x - 1) mod P = x mod P - 1).
        { assert (x - 1 = P * (x / P) + (x mod P - 1)) by lia.
          split; symmetry; [eapply Z.div_unique|eapply Z.mod_unique]; try eassumption; left; lia. }
        destruct F as [F1 F2]. rewrite F1, F2.
        replace (x mod P - 1 + 1) with (x mod P) by lia. lia.
  Qed.

  Lemma sum_weights p : 0 <= p <= 2 * K -> sum weight (upto p) = upto_noise p.
  Proof.
    intros Hp. rewrite (sum_telescope _ upto_noise).
    - unfold upto_noise at 2. cbn. lia.
    - lia.
    - intros u Hu. apply upto_noise_step. lia.
  Qed.

  Lemma upto_noise_mono p q : 0 <= p <= q -> q <= 2 * K -> upto_noise p <= upto_noise q.
  Proof.
    intros Hp Hq. rewrite <- !sum_weights by lia. replace q with (p + (q - p)) by lia.
    rewrite upto_add, sum_app by lia.
    assert (0 <= sum weight (map (Z.add p) (upto (q - p)))).
    { rewrite sum_map. apply sum_nonneg. intros x Hx. apply in_upto in Hx.
      pose proof (weight_pos (p + x) ltac:(lia)). lia. }
    lia.
  Qed.

  Lemma K_pos : 2 * P <= K.
  Proof. pose proof P_pos. pose proof (n_reach a D) as HJ0. fold J in HJ0. unfold K. nia. Qed.

  Lemma upto_noise_all : upto_noise (2 * K) = N * N.
  Proof.
    pose proof K_pos. pose proof P_pos. pose proof (n_reach a D) as HJ0. fold J in HJ0.
    unfold upto_noise. destruct (Z.leb_spec (2 * K) 0); [lia|].
    rewrite noise_upto_eq.
    assert (F : (2 * K - 1) / P = 2 * J + 1 /\ (2 * K - 1) mod P = P - 1).
    { assert (2 * K - 1 = P * (2 * J + 1) + (P - 1)) by (unfold K; lia).
      split; symmetry; [eapply Z.div_unique|eapply Z.mod_unique]; try eassumption; left; lia. }
    destruct F as [F1 F2]. rewrite F1, F2.
    rewrite (firstn_all_total _ (P - 1 + 1)) by (rewrite shape_length; lia). rewrite shape_total.
    rewrite <- Z.mul_add_distr_r. f_equal.
    rewrite <- total_firstn_S by (rewrite (n_blocks a D); fold J; lia).
    rewrite firstn_all_total by (rewrite (n_blocks a D); fold J; lia). apply (n_total_blocks a D).
  Qed.

  (** * The three kinds of outputs *)

  Lemma ratio_parts :
    den <= num /\
    den * largest (below a) <= num * least (below a) /\
    den * largest (above a) <= num * least (above a) /\
    neighbours_within num den (firstn (Z.to_nat J) (skipn 1 (blocks a))) (below a) (below a) = true /\
    neighbours_within num den (firstn (Z.to_nat J) (skipn (S (Z.to_nat J)) (blocks a))) (above a) (above a) = true /\
    neighbours_within num den (firstn 2 (skipn (Z.to_nat J) (blocks a))) (below a) (above a) = true /\
    den * noise_upto a (low a) <= num * noise_upto a (low a - P) /\
    den * (N * N - noise_upto a (high a - 1 - P)) <= num * (N * N - noise_upto a (high a - 1)).
  Proof.
    unfold additive_ratio in Hratio. rewrite !andb_true_iff, !Z.leb_le in Hratio.
    fold P J N in Hratio. tauto.
  Qed.

  Lemma num_nonneg : 0 <= num.
  Proof. destruct ratio_parts. lia. Qed.

  Lemma same_block b i i' :
    0 <= b < 2 * J + 2 -> 0 <= i < P -> 0 <= i' < P ->
    den * (at_ (blocks a) b * at_ (shape (J + 1 <=? b)) i)
    <= num * (at_ (blocks a) b * at_ (shape (J + 1 <=? b)) i').
  Proof.
    intros Hb Hi Hi'. pose proof (block_one b Hb). pose proof num_nonneg.
    set (up := J + 1 <=? b).
    assert (L : den * largest (shape up) <= num * least (shape up))
      by (destruct ratio_parts as (_ & A & B & _); destruct up; [exact B|exact A]).
    assert (I1 : In (at_ (shape up) i) (shape up)) by (apply at_in; rewrite shape_length; auto).
    assert (I2 : In (at_ (shape up) i') (shape up)) by (apply at_in; rewrite shape_length; auto).
    destruct (fold_left_max (shape up) (hd 0 (shape up))) as [_ M1].
    destruct (fold_left_min (shape up) (hd 0 (shape up))) as [_ M2].
    specialize (M1 _ I1). specialize (M2 _ I2). unfold largest, least in L.
    rewrite !(Z.mul_shuffle3 _ (at_ (blocks a) b)). apply Z.mul_le_mono_nonneg_l; [lia|].
    apply Z.le_trans with (den * fold_left Z.max (shape up) (hd 0 (shape up)));
      [apply Z.mul_le_mono_nonneg_l; lia|].
    eapply Z.le_trans; [exact L|]. apply Z.mul_le_mono_nonneg_l; lia.
  Qed.

  Lemma next_block b i i' :
    1 <= b -> b + 1 <= 2 * J -> 0 <= i' <= i -> i < P ->
    let x := at_ (blocks a) b * at_ (shape (J + 1 <=? b)) i in
    let y := at_ (blocks a) (b + 1) * at_ (shape (J + 1 <=? b + 1)) i' in
    den * x <= num * y /\ den * y <= num * x.
  Proof.
    intros Hb Hb' Hi Hi' x y. pose proof num_nonneg as Hn. pose proof (n_reach a D) as HJ. fold J in HJ.
    pose proof (n_blocks a D) as HBl. fold J in HBl.
    destruct ratio_parts as (_ & _ & _ & R1 & R2 & R3 & _).
    pose proof (shape_length false) as L0. pose proof (shape_length true) as L1. unfold shape in L0, L1.
    destruct (Z.leb_spec (b + 1) J) as [C|C]; [|destruct (Z.eq_dec b J) as [C'|C']].
    - pose proof (neighbours_bound _ _ _ _ _ (b - 1) i i' R1 ltac:(lia) Hn) as G.
      unfold x, y. rewrite (proj2 (Z.leb_gt (J + 1) b)), (proj2 (Z.leb_gt (J + 1) (b + 1))) by lia.
      rewrite !at_firstn_skipn in G by lia.
      replace (Z.of_nat 1 + (b - 1)) with b in G by lia.
      replace (Z.of_nat 1 + (b - 1 + 1)) with (b + 1) in G by lia.
      apply G; try (unfold shape; lia); auto.
      + apply ones_firstn, ones_skipn, (n_ones_blocks a D).
      + apply (n_ones_below a D).
      + apply (n_ones_below a D).
      + rewrite firstn_length, skipn_length. lia.
    - pose proof (neighbours_bound _ _ _ _ _ 0 i i' R3 ltac:(lia) Hn) as G.
      unfold x, y. rewrite (proj2 (Z.leb_gt (J + 1) b)), (proj2 (Z.leb_le (J + 1) (b + 1))) by lia.
      rewrite !at_firstn_skipn in G by lia.
      replace (Z.of_nat (Z.to_nat J) + 0) with b in G by lia.
      replace (Z.of_nat (Z.to_nat J) + (0 + 1)) with (b + 1) in G by lia.
      apply G; try (unfold shape; lia); auto.
      + apply ones_firstn, ones_skipn, (n_ones_blocks a D).
      + apply (n_ones_below a D).
      + apply (n_ones_above a D).
      + rewrite firstn_length, skipn_length. lia.
    - pose proof (neighbours_bound _ _ _ _ _ (b - J - 1) i i' R2 ltac:(lia) Hn) as G.
      unfold x, y. rewrite (proj2 (Z.leb_le (J + 1) b)), (proj2 (Z.leb_le (J + 1) (b + 1))) by lia.
      rewrite !at_firstn_skipn in G by lia.
      replace (Z.of_nat (S (Z.to_nat J)) + (b - J - 1)) with b in G by lia.
      replace (Z.of_nat (S (Z.to_nat J)) + (b - J - 1 + 1)) with (b + 1) in G by lia.
      apply G; try (unfold shape; lia); auto.
      + apply ones_firstn, ones_skipn, (n_ones_blocks a D).
      + apply (n_ones_above a D).
      + apply (n_ones_above a D).
      + rewrite firstn_length, skipn_length. lia.
  Qed.

  Lemma weights_near x x' :
    P <= x -> x <= x' -> x' - x <= P -> x' < (2 * J + 1) * P ->
    den * weight x <= num * weight x' /\ den * weight x' <= num * weight x.
  Proof.
    intros H1 H2 H3 H4. pose proof P_pos.
    pose proof (Z.mod_pos_bound x P ltac:(lia)) as M. pose proof (Z.div_mod x P ltac:(lia)) as E.
    pose proof (Z.mod_pos_bound x' P ltac:(lia)) as M'. pose proof (Z.div_mod x' P ltac:(lia)) as E'.
    unfold weight. set (b := x / P) in *. set (b' := x' / P) in *.
    set (i := x mod P) in *. set (i' := x' mod P) in *.
    assert (1 <= b) by (apply Z.div_le_lower_bound; lia).
    assert (b' <= 2 * J) by (assert (b' < 2 * J + 1) by (apply Z.div_lt_upper_bound; lia); lia).
    assert (C : b' = b \/ (b' = b + 1 /\ i' <= i)) by nia.
    destruct C as [->|[-> Hi]].
    - split; apply same_block; lia.
    - apply next_block; lia.
  Qed.

  Section Draws.
    Variable block : Z -> Z.
    Variable inside : bool -> Z -> Z.
    Variable scale : Z.
    Hypothesis block_in : forall w, In w (words 64) -> 0 <= block w < 2 * J + 2.
    Hypothesis inside_in : forall up w, In w (words 64) -> 0 <= inside up w < P.
    Hypothesis block_count : forall i, 0 <= i < 2 * J + 2 ->
      count (words 64) (fun w => block w =? i) = scale * at_ (blocks a) i.
    Hypothesis inside_count : forall up i, 0 <= i < P ->
      count (words 64) (fun w => inside up w =? i) = scale * at_ (shape up) i.

    Let pairs := list_prod (words 64) (words 64).
    Let noise (ws : Z * Z) : Z :=
      let b := block (fst ws) - (J + 1) in b * P + inside (0 <=? b) (snd ws).

    (** #{words : Q noise}, as a sum of weights. *)
    Lemma count_noise (Q : Z -> bool) :
      count pairs (fun ws => Q (noise ws))
      = scale * scale * sum (fun x => weight x * b2z (Q (x - K))) (upto (2 * K)).
    Proof.
      pose proof P_pos. pose proof (n_reach a D) as HJ. fold J in HJ.
      unfold pairs. rewrite count_sum, sum_prod.
      rewrite (sum_ext _ (fun w => sum (fun i => scale * at_ (shape (J + 1 <=? block w)) i
                                   * b2z (Q ((block w - (J + 1)) * P + i))) (upto P))).
      2:{ intros w Hw. unfold noise. cbn [fst snd].
          assert (Eb : (0 <=? block w - (J + 1)) = (J + 1 <=? block w))
            by (destruct (Z.leb_spec 0 (block w - (J + 1))), (Z.leb_spec (J + 1) (block w)); lia).
          rewrite Eb.
          rewrite (sum_pushforward (words 64) (inside (J + 1 <=? block w)) P
                     (fun i => b2z (Q ((block w - (J + 1)) * P + i)))) by auto.
          apply sum_ext. intros i Hi. apply in_upto in Hi. rewrite inside_count by auto. lia. }
      rewrite (sum_pushforward (words 64) block (2 * J + 2)
        (fun b => sum (fun i => scale * at_ (shape (J + 1 <=? b)) i
                                * b2z (Q ((b - (J + 1)) * P + i))) (upto P))) by auto.
      replace (2 * K) with ((2 * J + 2) * P) by (unfold K; lia).
      rewrite sum_columns by lia. rewrite sum_swap. rewrite <- sum_scale.
      apply sum_ext. intros b Hb. apply in_upto in Hb. rewrite block_count by auto.
      rewrite (Z.mul_comm (sum _ _)), <- !sum_scale. apply sum_ext. intros i Hi. apply in_upto in Hi.
      unfold weight. rewrite (Z.add_comm (b * P) i).
      rewrite Z.div_add, Z.mod_add, Z.div_small, Z.mod_small by lia. rewrite Z.add_0_l.
      replace (i + b * P - K) with ((b - (J + 1)) * P + i) by (unfold K; lia). lia.
    Qed.

    Lemma sum_below p :
      0 <= p <= 2 * K -> sum (fun x => weight x * b2z (x <? p)) (upto (2 * K)) = upto_noise p.
    Proof.
      intros Hp. replace (2 * K) with (p + (2 * K - p)) by lia.
      rewrite upto_add, sum_app, sum_map by lia.
      rewrite (sum_ext _ weight) by
        (intros x Hx; apply in_upto in Hx; destruct (Z.ltb_spec x p); cbn [b2z]; lia).
      rewrite sum_weights by lia.
      rewrite (sum_ext _ (fun _ => 0)) by
        (intros x Hx; apply in_upto in Hx; destruct (Z.ltb_spec (p + x) p); cbn [b2z]; lia).
      rewrite sum_const. lia.
    Qed.

    Lemma count_below p :
      0 <= p <= 2 * K ->
      count pairs (fun ws => noise ws <? p - K) = scale * scale * upto_noise p.
    Proof.
      intros Hp. rewrite (count_noise (fun n => n <? p - K)). f_equal.
      rewrite <- (sum_below p Hp). apply sum_ext. intros x _.
      destruct (Z.ltb_spec (x - K) (p - K)), (Z.ltb_spec x p); cbn [b2z]; lia.
    Qed.

    Lemma count_from p :
      0 <= p <= 2 * K ->
      count pairs (fun ws => p - K <=? noise ws) = scale * scale * (N * N - upto_noise p).
    Proof.
      intros Hp. rewrite (count_noise (fun n => p - K <=? n)). f_equal.
      rewrite <- (sum_below p Hp), <- upto_noise_all, <- (sum_weights (2 * K))
        by (pose proof K_pos; pose proof P_pos; lia).
      assert (E : sum (fun x => weight x * b2z (p - K <=? x - K)) (upto (2 * K))
                  + sum (fun x => weight x * b2z (x <? p)) (upto (2 * K)) = sum weight (upto (2 * K))).
      { rewrite <- sum_plus. apply sum_ext. intros x _.
        destruct (Z.leb_spec (p - K) (x - K)), (Z.ltb_spec x p); cbn [b2z]; lia. }
      lia.
    Qed.

    Lemma count_point n :
      - K <= n < K ->
      count pairs (fun ws => noise ws =? n) = scale * scale * weight (n + K).
    Proof.
      intros Hn. rewrite (count_noise (fun m => m =? n)). f_equal.
      rewrite (sum_ext _ (fun x => weight x * b2z (n + K =? x))) by
        (intros x _; destruct (Z.eqb_spec (x - K) n), (Z.eqb_spec (n + K) x); cbn [b2z]; lia).
      apply sum_pick; [apply nodup_upto|]. apply in_upto. lia.
    Qed.

    Lemma label_place y : row (labels a) y -> 0 <= y * spacing a <= P.
    Proof. unfold row, P, period. pose proof (n_spacing a D). nia. Qed.

    Theorem noise_private :
      private num den (row (labels a)) pairs (additive_draw a block inside).
    Proof.
      pose proof P_pos as HP. pose proof K_pos as HK. pose proof num_nonneg as Hn.
      pose proof (n_low a D) as Hl. pose proof (n_ends a D) as He. pose proof (n_high a D) as Hh.
      pose proof (n_reach a D) as HJ. fold P J in Hl, Hh, HJ.
      destruct ratio_parts as (R0 & _ & _ & _ & _ & _ & RL & RH).
      assert (S2 : 0 <= scale * scale) by nia.
      assert (Lo : low a + K + 1 <= 2 * K) by (unfold K; lia).
      assert (Lo' : P <= low a - P + K) by (unfold K; lia).
      apply private_of_points with (os := map (Z.add (low a)) (upto (high a - low a + 1))).
      - apply Injective_map_NoDup; [intros x y; lia|apply nodup_upto].
      - intros y w _ _. apply in_map_iff.
        exists (additive_draw a block inside y w - low a). split; [lia|]. apply in_upto.
        unfold additive_draw. lia.
      - intros y y' t Hy Hy' Ht.
        apply in_map_iff in Ht. destruct Ht as (x & <- & Hx). apply in_upto in Hx.
        set (t := low a + x) in *. assert (T : low a <= t <= high a) by lia.
        pose proof (label_place y Hy) as Py. pose proof (label_place y' Hy') as Py'.
        set (s := y * spacing a) in *. set (s' := y' * spacing a) in *.
        assert (DR : forall z ws, additive_draw a block inside z ws
                     = Z.min (Z.max (z * spacing a + noise ws) (low a)) (high a)) by reflexivity.
        assert (EX : forall z Q, (forall ws, (additive_draw a block inside z ws =? t) = Q ws) ->
                     count pairs (fun ws => additive_draw a block inside z ws =? t) = count pairs Q)
          by (intros z Q HQ; apply count_ext; auto).
        destruct (Z.eq_dec (low a) (high a)) as [Eq|Ne].
        + rewrite !(EX _ (fun _ => true)) by
            (intros ws; rewrite DR; apply Z.eqb_eq; lia).
          pose proof (count_nonneg pairs (fun _ => true)). nia.
        + destruct (Z.eq_dec t (low a)) as [TL|TL]; [|destruct (Z.eq_dec t (high a)) as [TH|TH]].
          * assert (C : forall z, 0 <= z * spacing a <= P ->
              count pairs (fun ws => additive_draw a block inside z ws =? t)
              = scale * scale * upto_noise (low a - z * spacing a + K + 1)).
            { intros z Hz. rewrite <- count_below by lia. apply EX. intros ws. rewrite DR.
              destruct (Z.eqb_spec (Z.min (Z.max (z * spacing a + noise ws) (low a)) (high a)) t),
                (Z.ltb_spec (noise ws) (low a - z * spacing a + K + 1 - K)); lia. }
            rewrite !C by auto. rewrite !(Z.mul_shuffle3 _ (scale * scale)).
            apply Z.mul_le_mono_nonneg_l; auto. fold s s'.
            assert (A1 : upto_noise (low a - s + K + 1) <= upto_noise (low a + K + 1))
              by (apply upto_noise_mono; lia).
            assert (A2 : upto_noise (low a - P + K + 1) <= upto_noise (low a - s' + K + 1))
              by (apply upto_noise_mono; lia).
            assert (A3 : upto_noise (low a + K + 1) = noise_upto a (low a)).
            { unfold upto_noise. destruct (Z.leb_spec (low a + K + 1) 0); [lia|]. f_equal. lia. }
            assert (A4 : upto_noise (low a - P + K + 1) = noise_upto a (low a - P)).
            { unfold upto_noise. destruct (Z.leb_spec (low a - P + K + 1) 0); [lia|]. f_equal. lia. }
            rewrite A3 in A1. rewrite A4 in A2.
            apply Z.le_trans with (den * noise_upto a (low a)); [apply Z.mul_le_mono_nonneg_l; lia|].
            eapply Z.le_trans; [exact RL|]. apply Z.mul_le_mono_nonneg_l; lia.
          * assert (C : forall z, 0 <= z * spacing a <= P ->
              count pairs (fun ws => additive_draw a block inside z ws =? t)
              = scale * scale * (N * N - upto_noise (high a - z * spacing a + K))).
            { intros z Hz. rewrite <- count_from by lia. apply EX. intros ws. rewrite DR.
              destruct (Z.eqb_spec (Z.min (Z.max (z * spacing a + noise ws) (low a)) (high a)) t),
                (Z.leb_spec (high a - z * spacing a + K - K) (noise ws)); lia. }
            rewrite !C by auto. rewrite !(Z.mul_shuffle3 _ (scale * scale)).
            apply Z.mul_le_mono_nonneg_l; auto. fold s s'.
            assert (A1 : upto_noise (high a - P + K) <= upto_noise (high a - s + K))
              by (apply upto_noise_mono; lia).
            assert (A2 : upto_noise (high a - s' + K) <= upto_noise (high a + K))
              by (apply upto_noise_mono; unfold K in *; lia).
            assert (A3 : upto_noise (high a + K) = noise_upto a (high a - 1)).
            { unfold upto_noise. destruct (Z.leb_spec (high a + K) 0); [lia|]. f_equal. lia. }
            assert (A4 : upto_noise (high a - P + K) = noise_upto a (high a - 1 - P)).
            { unfold upto_noise. destruct (Z.leb_spec (high a - P + K) 0); [lia|]. f_equal. lia. }
            rewrite A4 in A1. rewrite A3 in A2.
            apply Z.le_trans with (den * (N * N - noise_upto a (high a - 1 - P)));
              [apply Z.mul_le_mono_nonneg_l; lia|].
            eapply Z.le_trans; [exact RH|]. apply Z.mul_le_mono_nonneg_l; lia.
          * assert (C : forall z, 0 <= z * spacing a <= P ->
              count pairs (fun ws => additive_draw a block inside z ws =? t)
              = scale * scale * weight (t - z * spacing a + K)).
            { intros z Hz. rewrite <- count_point by (unfold K in *; lia). apply EX. intros ws. rewrite DR.
              destruct (Z.eqb_spec (Z.min (Z.max (z * spacing a + noise ws) (low a)) (high a)) t),
                (Z.eqb_spec (noise ws) (t - z * spacing a)); lia. }
            rewrite !C by auto. rewrite !(Z.mul_shuffle3 _ (scale * scale)).
            apply Z.mul_le_mono_nonneg_l; auto. fold s s'.
            destruct (Z.leb_spec s s').
            -- apply (weights_near (t - s' + K) (t - s + K)); unfold K in *; lia.
            -- apply (weights_near (t - s + K) (t - s' + K)); unfold K in *; lia.
    Qed.
  End Draws.
End Additive.

Lemma same_eq l k : same l k = true -> l = k.
Proof.
  unfold same. rewrite andb_true_iff, Z.eqb_eq, forallb_in. revert k.
  induction l as [|x l IH]; intros [|y k] [L H]; cbn [length] in L; try lia; auto.
  pose proof (H (x, y) (or_introl eq_refl)) as E. apply Z.eqb_eq in E. cbn [fst snd] in E. subst.
  f_equal. apply IH. split; [lia|]. intros p Hp. apply H. right. auto.
Qed.

Lemma sampled_by_samples B c entries l :
  sampled_by B c entries l = true ->
  let m := Z.of_nat (length l) in
  samples B c m entries /\ first_weights B c m entries = l.
Proof.
  unfold sampled_by. rewrite andb_true_iff. intros [H1 H2]. split.
  - apply alias_samples. exact H1.
  - apply same_eq. exact H2.
Qed.

Theorem additive_private_proof num den a c d block_entries below_entries above_entries :
  additive_file_check num den a c d block_entries below_entries above_entries = true ->
  private num den (row (labels a)) (list_prod (words 64) (words 64))
    (additive_out a c d block_entries below_entries above_entries).
Proof.
  unfold additive_file_check, additive_check. rewrite !andb_true_iff, Z.ltb_lt, additive_is_drawn_iff.
  intros [[[S1 S2] S3] [[Hd D] Hr]].
  apply sampled_by_samples in S1, S2, S3. cbn zeta in S1, S2, S3.
  rewrite (n_blocks a D) in S1. rewrite (n_below a D) in S2. rewrite (n_above a D) in S3.
  destruct S1 as [S1 E1], S2 as [S2 E2], S3 as [S3 E3].
  refine (noise_private a D num den Hd Hr (item (a_bits a) c block_entries)
    (fun up => item (a_bits a) d (if up then above_entries else below_entries))
    (2 ^ (64 - a_bits a)) _ _ _ _).
  - intros w Hw. exact (s_range _ _ _ _ S1 w Hw).
  - intros [] w Hw; [exact (s_range _ _ _ _ S3 w Hw)|exact (s_range _ _ _ _ S2 w Hw)].
  - intros i Hi. rewrite <- E1. exact (s_count _ _ _ _ S1 i Hi).
  - intros [] i Hi; [rewrite <- E3; exact (s_count _ _ _ _ S3 i Hi)
                    |rewrite <- E2; exact (s_count _ _ _ _ S2 i Hi)].
Qed.
