(** The lookup of a window's graph finds the segment of every point. *)

From Coq Require Import ZArith List Lia Bool.
From LabelDP Require Import Draw Check Counting Lines Windows Tables.
Import ListNotations.
Open Scope Z_scope.

Lemma shiftr_between x i H :
  0 <= H -> i * 2 ^ H <= x < (i + 1) * 2 ^ H -> Z.shiftr x H = i.
Proof.
  intros HH Hx. rewrite Z.shiftr_div_pow2 by lia.
  assert (0 < 2 ^ H) by (apply Z.pow_pos_nonneg; lia).
  symmetry. apply Z.div_unique with (x - i * 2 ^ H); [left|]; lia.
Qed.

Lemma shiftr_bounds x H :
  0 <= H -> Z.shiftr x H * 2 ^ H <= x < (Z.shiftr x H + 1) * 2 ^ H.
Proof.
  intros HH. rewrite Z.shiftr_div_pow2 by lia.
  assert (0 < 2 ^ H) by (apply Z.pow_pos_nonneg; lia).
  pose proof (Z.div_mod x (2 ^ H) ltac:(lia)). pose proof (Z.mod_pos_bound x (2 ^ H) ltac:(lia)). lia.
Qed.

Lemma one_bucket H lo hi q t :
  0 <= H -> lo <= t < hi ->
  Z.shiftr (hi - 1 + q) H <= Z.shiftr (lo + q) H + 1 ->
  let id := Z.shiftr (lo + q) H in
  let cut := Z.min hi ((id + 1) * 2 ^ H - q) in
  Z.shiftr (t + q) H = (if t <? cut then id else Z.shiftr (hi - 1 + q) H).
Proof.
  intros HH Ht Hc id cut. assert (0 < 2 ^ H) by (apply Z.pow_pos_nonneg; lia).
  pose proof (shiftr_bounds (lo + q) H HH) as B1. fold id in B1.
  pose proof (shiftr_bounds (hi - 1 + q) H HH) as B2.
  pose proof (shiftr_bounds (t + q) H HH) as B3.
  destruct (Z.ltb_spec t cut).
  - apply shiftr_between; [auto|]. unfold cut in *. lia.
  - assert (C : cut = (id + 1) * 2 ^ H - q) by (unfold cut in *; lia). rewrite C in *.
    set (a := Z.shiftr (t + q) H) in *. set (z := Z.shiftr (hi - 1 + q) H) in *.
    assert (id + 1 <= a) by nia. assert (a <= z) by nia. fold id in Hc. lia.
Qed.

Lemma buckets_find H first stop shift : forall (qs : list Z) b t,
  0 <= H -> 0 <= shift -> 0 <= first < (b + 1) * 2 ^ shift ->
  buckets_fit H first stop shift b qs = true ->
  Z.max first (b * 2 ^ shift) <= t < stop ->
  owner (buckets H first stop shift b qs) (t - Z.max first (b * 2 ^ shift))
  = Z.shiftr (t + at_ qs (Z.shiftr t shift - b)) H /\
  lengths_ok (buckets H first stop shift b qs) /\
  length_of (buckets H first stop shift b qs) = stop - Z.max first (b * 2 ^ shift).
Proof.
  intros qs. induction qs as [|q l IH]; intros b t HH Hs Hf HF Ht; cbn [buckets buckets_fit] in *.
  - rewrite Z.leb_le in HF. lia.
  - rewrite !andb_true_iff, Z.ltb_lt, Z.leb_le in HF. destruct HF as [[H1 H2] H3].
    assert (0 < 2 ^ shift) by (apply Z.pow_pos_nonneg; lia).
    assert (0 < 2 ^ H) by (apply Z.pow_pos_nonneg; lia).
    set (lo := Z.max first (b * 2 ^ shift)) in *.
    set (hi := Z.min stop ((b + 1) * 2 ^ shift)) in *.
    set (id := Z.shiftr (lo + q) H) in *.
    set (cut := Z.min hi ((id + 1) * 2 ^ H - q)) in *.
    pose proof (shiftr_bounds (lo + q) H HH) as B1. fold id in B1.
    assert (Hcut : lo < cut <= hi) by (unfold cut; lia).
    assert (G : forall rest, (lengths_ok rest -> lengths_ok
        ((cut - lo, id) :: (hi - cut, Z.shiftr (hi - 1 + q) H) :: rest))).
    { intros rest Hrest n j [E|[E|Hi]]; [inversion E; lia|inversion E; lia|apply (Hrest n j Hi)]. }
    assert (LT : forall rest, length_of ((cut - lo, id) :: (hi - cut, Z.shiftr (hi - 1 + q) H) :: rest)
                 = hi - lo + length_of rest).
    { intros rest. unfold length_of. cbn [map fst]. unfold total. cbn [fold_right]. lia. }
    assert (TAIL : lengths_ok (buckets H first stop shift (b + 1) l) /\
                   length_of (buckets H first stop shift (b + 1) l) = stop - hi /\
                   (hi <= t -> owner (buckets H first stop shift (b + 1) l) (t - hi)
                               = Z.shiftr (t + at_ l (Z.shiftr t shift - (b + 1))) H)).
    { destruct (Z.ltb_spec ((b + 1) * 2 ^ shift) stop) as [L|L].
      - assert (E : hi = (b + 1) * 2 ^ shift) by (unfold hi; lia).
        assert (M : Z.max first ((b + 1) * 2 ^ shift) = hi) by lia.
        assert (Hf' : 0 <= first < (b + 1 + 1) * 2 ^ shift) by lia.
        split; [|split].
        + destruct (IH (b + 1) hi HH Hs Hf' H3 ltac:(lia)) as (_ & A & _). exact A.
        + destruct (IH (b + 1) hi HH Hs Hf' H3 ltac:(lia)) as (_ & _ & A). lia.
        + intros Hge. destruct (IH (b + 1) t HH Hs Hf' H3 ltac:(lia)) as (A & _ & _).
          rewrite M in A. exact A.
      - assert (E : hi = stop) by (unfold hi; lia).
        destruct l as [|q' l']; cbn [buckets buckets_fit] in *.
        + split; [easy|]. split; [cbn; lia|]. lia.
        + rewrite !andb_true_iff, Z.ltb_lt in H3. lia. }
    destruct TAIL as (T1 & T2 & T3).
    split; [|split; [apply G; exact T1|rewrite LT, T2; lia]].
    cbn [owner].
    destruct (Z.ltb_spec t hi) as [L|L].
    + assert (Eb : Z.shiftr t shift = b) by (apply shiftr_between; [auto|unfold lo, hi in *; lia]).
      rewrite Eb, Z.sub_diag. change (at_ (q :: l) 0) with q.
      pose proof (one_bucket H lo hi q t HH ltac:(lia) H2) as O. cbn zeta in O. fold id cut in O.
      rewrite O.
      destruct (Z.ltb_spec (t - lo) (cut - lo)), (Z.ltb_spec t cut); try lia; auto.
      destruct (Z.ltb_spec (t - lo - (cut - lo)) (hi - cut)); [auto|lia].
    + destruct (Z.ltb_spec (t - lo) (cut - lo)); [lia|].
      destruct (Z.ltb_spec (t - lo - (cut - lo)) (hi - cut)); [lia|].
      replace (t - lo - (cut - lo) - (hi - cut)) with (t - hi) by lia.
      rewrite T3 by lia. do 2 f_equal.
      assert (Hb : b + 1 <= Z.shiftr t shift).
      { assert (hi = (b + 1) * 2 ^ shift) by (unfold hi in *; lia).
        pose proof (shiftr_bounds t shift Hs). nia. }
      replace (Z.shiftr t shift - b) with (1 + (Z.shiftr t shift - (b + 1))) by lia.
      rewrite at_cons by lia. reflexivity.
Qed.

Lemma grid_finds H : forall grid first t,
  0 <= H -> 0 <= first -> grid_fits H first grid = true ->
  first <= t < first + length_of (pieces H grid) ->
  lengths_ok (pieces H grid) /\
  owner (pieces H grid) (t - first) = segment_of H grid t.
Proof.
  unfold pieces. induction grid as [|s grid IH]; intros first t HH Hf HG Ht; cbn [flat_map] in *.
  - cbn in Ht. lia.
  - cbn [grid_fits] in HG. rewrite !andb_true_iff, Z.eqb_eq, !Z.leb_le, Z.ltb_lt in HG.
    destruct HG as [[[[[E F1] F2] F3] F4] F5]. subst first.
    set (b0 := Z.shiftr (from s) (shift s)) in *.
    pose proof (shiftr_bounds (from s) (shift s) F3) as B. fold b0 in B.
    assert (M : Z.max (from s) (b0 * 2 ^ shift s) = from s) by lia.
    assert (Q : forall x, from s <= x < upto_ s ->
      owner (buckets H (from s) (upto_ s) (shift s) b0 (entries s)) (x - Z.max (from s) (b0 * 2 ^ shift s))
      = Z.shiftr (x + at_ (entries s) (Z.shiftr x (shift s) - b0)) H /\
      lengths_ok (buckets H (from s) (upto_ s) (shift s) b0 (entries s)) /\
      length_of (buckets H (from s) (upto_ s) (shift s) b0 (entries s))
      = upto_ s - Z.max (from s) (b0 * 2 ^ shift s)).
    { intros x Hx. apply buckets_find; auto; lia. }
    destruct (Q (from s) ltac:(lia)) as (_ & L1 & L2). rewrite M in L2.
    rewrite length_of_app, L2 in Ht.
    assert (LR : lengths_ok (flat_map (fun s => buckets H (from s) (upto_ s) (shift s)
        (Z.shiftr (from s) (shift s)) (entries s)) grid)).
    { clear - F5 HH. revert F5. generalize (upto_ s). induction grid as [|r grid IH]; intros a F5; [easy|].
      cbn [grid_fits flat_map] in *. rewrite !andb_true_iff, Z.eqb_eq, !Z.leb_le, Z.ltb_lt in F5.
      destruct F5 as [[[[[E F1] F2] F3] F4] F5].
      pose proof (shiftr_bounds (from r) (shift r) F3) as B.
      destruct (buckets_find H (from r) (upto_ r) (shift r) (entries r) (Z.shiftr (from r) (shift r)) (from r) HH F3
        ltac:(lia) F4 ltac:(lia)) as (_ & L & _).
      intros n j Hi. apply in_app_or in Hi. destruct Hi as [Hi|Hi]; [apply (L n j Hi)|].
      apply (IH (upto_ r) F5 n j Hi). }
    split.
    + intros n j Hi. apply in_app_or in Hi. destruct Hi as [Hi|Hi]; [apply (L1 n j Hi)|apply (LR n j Hi)].
    + rewrite owner_app by (auto; lia). rewrite L2. unfold segment_of. cbn [entry_of].
      destruct (Z.ltb_spec (t - from s) (upto_ s - from s)), (Z.ltb_spec t (upto_ s)); try lia.
      * destruct (Q t ltac:(lia)) as (A & _ & _). rewrite M in A. exact A.
      * replace (t - from s - (upto_ s - from s)) with (t - upto_ s) by lia.
        destruct (IH (upto_ s) t HH ltac:(lia) F5 ltac:(lia)) as [_ A]. exact A.
Qed.

Lemma owner_merged l : forall t, lengths_ok l -> 0 <= t ->
  t < length_of l -> owner (merged l) t = owner l t.
Proof.
  unfold length_of.
  induction l as [|[n i] l IH]; intros t Hl Ht HT; [reflexivity|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  change (total (map fst ((n, i) :: l))) with (n + total (map fst l)) in HT.
  cbn [merged]. destruct (Z.eqb_spec n 0) as [->|N].
  - cbn [owner]. destruct (Z.ltb_spec t 0); [lia|]. rewrite Z.sub_0_r. apply IH; auto; lia.
  - cbn [owner]. destruct (merged l) as [|[m j] more] eqn:E.
    + cbn [owner]. destruct (Z.ltb_spec t n); auto.
      specialize (IH (t - n) Hl ltac:(lia) ltac:(lia)). exact IH.
    + destruct (Z.eqb_spec i j) as [->|].
      * cbn [owner]. destruct (Z.ltb_spec t n).
        -- destruct (Z.ltb_spec t (n + m)); auto.
           assert (0 <= m).
           { assert (P : forall k, lengths_ok k -> lengths_ok (merged k)).
             { clear. induction k as [|[a b] k IH]; intros Hk; [easy|].
               apply lengths_ok_cons in Hk. destruct Hk as [Ha Hk]. cbn [merged].
               specialize (IH Hk). destruct (a =? 0); auto.
               destruct (merged k) as [|[c d] r]; [intros x y [X|[]]; inversion X; lia|].
               apply lengths_ok_cons in IH. destruct IH as [Hc Hr].
               destruct (b =? d); intros x y [X|X]; try (inversion X; lia); [apply (Hr x y X)|].
               destruct X as [X|X]; [inversion X; lia|apply (Hr x y X)]. }
             specialize (P l Hl). rewrite E in P. apply lengths_ok_cons in P. lia. }
           lia.
        -- specialize (IH (t - n) Hl ltac:(lia) ltac:(lia)). cbn [owner] in IH.
           destruct (Z.ltb_spec t (n + m)), (Z.ltb_spec (t - n) m); try lia; auto.
           rewrite <- IH. f_equal. lia.
      * cbn [owner]. destruct (Z.ltb_spec t n); auto.
        specialize (IH (t - n) Hl ltac:(lia) ltac:(lia)). cbn [owner] in IH. exact IH.
Qed.

Lemma same_pairs_eq l k : same_pairs l k = true -> l = k.
Proof.
  unfold same_pairs. rewrite andb_true_iff, Z.eqb_eq, forallb_in. revert k.
  induction l as [|[a b] l IH]; intros [|[c d] k] [L H]; cbn [length] in L; try lia; auto.
  pose proof (H ((a, b), (c, d)) (or_introl eq_refl)) as E. cbn [fst snd] in E.
  rewrite andb_true_iff, !Z.eqb_eq in E. destruct E as [-> ->].
  f_equal. apply IH. split; [lia|]. intros p Hp. apply H. right. auto.
Qed.

Lemma upto_first n : 0 <= n -> upto (1 + n) = 0 :: map (Z.add 1) (upto n).
Proof.
  intros. rewrite upto_add by lia. change (upto 1) with (upto (Z.of_nat 1)).
  rewrite (upto_range 1). reflexivity.
Qed.

(** Numbered segments, and whose they are. *)
Lemma owner_numbered (l : list (Z * Z)) : forall k t,
  0 <= t < length_of l -> lengths_ok l ->
  0 <= owner (combine (map fst l) (map (Z.add k) (upto (Z.of_nat (length l))))) t - k
    < Z.of_nat (length l) /\
  at_ (map snd l) (owner (combine (map fst l) (map (Z.add k) (upto (Z.of_nat (length l))))) t - k)
  = owner l t.
Proof.
  unfold length_of. induction l as [|[n j] l IH]; intros k t Ht Hl.
  - cbn in Ht. lia.
  - apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
    change (total (map fst ((n, j) :: l))) with (n + total (map fst l)) in Ht.
    cbn [length map fst snd].
    replace (Z.of_nat (S (length l))) with (1 + Z.of_nat (length l)) by lia.
    rewrite upto_first by lia. cbn [map combine owner].
    destruct (Z.ltb_spec t n).
    + replace (k + 0 - k) with 0 by lia. split; [lia|reflexivity].
    + rewrite map_map.
      rewrite (map_ext (fun x => k + (1 + x)) (Z.add (k + 1))) by (intros; lia).
      destruct (IH (k + 1) (t - n) ltac:(lia) Hl) as [A B].
      set (o := owner _ _) in *. split; [lia|].
      replace (o - k) with (1 + (o - (k + 1))) by lia. rewrite at_cons by lia. exact B.
Qed.

Lemma length_of_merged l : length_of (merged l) = length_of l.
Proof.
  unfold length_of. induction l as [|[n i] l IH]; [reflexivity|].
  change (total (map fst ((n, i) :: l))) with (n + total (map fst l)). rewrite <- IH.
  cbn [merged]. destruct (Z.eqb_spec n 0) as [->|]; [lia|].
  destruct (merged l) as [|[m j] more]; [cbn; lia|].
  destruct (i =? j); cbn [map fst]; unfold total; cbn [fold_right]; lia.
Qed.

Theorem lookup_finds H grid l t :
  grid_check H grid l = true -> lengths_ok l -> 0 <= t < length_of l ->
  at_ (map snd l) (segment_of H grid t) = owner l t.
Proof.
  unfold grid_check. rewrite !andb_true_iff, Z.leb_le. intros [[HH HG] HE] Hl Ht.
  apply same_pairs_eq in HE.
  assert (LP : length_of (pieces H grid) = length_of l).
  { rewrite <- length_of_merged, HE. unfold length_of. rewrite map_fst_combine; auto.
    rewrite map_length, length_upto_nat. reflexivity. }
  destruct (grid_finds H grid 0 t HH ltac:(lia) HG ltac:(lia)) as [LO O].
  rewrite Z.sub_0_r in O. rewrite <- O, <- owner_merged by (auto; lia). rewrite HE.
  destruct (owner_numbered l 0 t Ht Hl) as [_ B]. rewrite Z.sub_0_r in B.
  rewrite (map_ext (Z.add 0) (fun x => x)) in B by (intros; lia). rewrite map_id in B. exact B.
Qed.

Theorem looked_up_private_proof num den w H grid :
  window_check num den w = true -> grid_check H grid (base_line w ++ extra w) = true ->
  private num den (row (rows_of w)) (words 64) (window_looked_up w H grid).
Proof.
  intros Hw Hg. apply (private_ext num den) with (out := window_out w).
  2: { apply window_rows_private_proof. exact Hw. }
  unfold window_check in Hw. rewrite !andb_true_iff, is_drawn_iff in Hw. destruct Hw as [[_ D] _].
  intros y v Hy Hv. symmetry. unfold window_looked_up.
  pose proof (d_bits w D).
  pose proof (high_bits_range (bits w) v ltac:(lia) Hv) as Hu. rewrite words_split in Hu.
  assert (Hr : in_range w (at_ (offsets w) y)) by (apply (d_offsets w D), at_in; exact Hy).
  destruct Hr as [Hs Hlast].
  change (window_out w y v) with (draw_bits w (at_ (offsets w) y) (high_bits (bits w) v)).
  set (u := high_bits (bits w) v) in *. set (s := at_ (offsets w) y) in *.
  unfold draw_bits. apply lookup_finds; [exact Hg| |].
  - intros n j Hi. apply in_app_or in Hi. destruct Hi as [Hi|Hi].
    + exact (base_line_ok w D n j Hi).
    + exact (extra_ok w D n j Hi).
  - rewrite length_of_app, base_line_length. pose proof (base_total_nonneg w D).
    destruct (Z.ltb_spec u (base_total w)); pose proof (d_width w D); lia.
Qed.
