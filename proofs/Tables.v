(** Alias tables give their items so many words; tables of counts are private. *)

From Coq Require Import ZArith List Lia Bool FMapPositive.
From LabelDP Require Import Draw Check Counting Lines Windows.
Import ListNotations.
Open Scope Z_scope.

(** * Lists by index *)

Lemma at_cons x l j : 0 <= j -> at_ (x :: l) (1 + j) = at_ l j.
Proof.
  intros. unfold at_. replace (Z.to_nat (1 + j)) with (S (Z.to_nat j)) by lia. reflexivity.
Qed.

Fixpoint isum (g : Z -> Z -> Z) (k : Z) (l : list Z) : Z :=
  match l with
  | [] => 0
  | x :: rest => g k x + isum g (k + 1) rest
  end.

Lemma sum_upto_0 f : sum f (upto 0) = 0.
Proof. change 0 with (Z.of_nat 0) at 1. rewrite upto_range. reflexivity. Qed.

Lemma sum_upto_1 f : sum f (upto 1) = f 0.
Proof. change 1 with (Z.of_nat 1). rewrite upto_range. cbn. lia. Qed.

Lemma sum_isum g l : forall k,
  sum (fun j => g (k + j) (at_ l j)) (upto (Z.of_nat (length l))) = isum g k l.
Proof.
  induction l as [|x l IH]; intros k; cbn [isum length].
  - apply sum_upto_0.
  - replace (Z.of_nat (S (length l))) with (1 + Z.of_nat (length l)) by lia.
    rewrite upto_add, sum_app, sum_map, sum_upto_1 by lia.
    replace (k + 0) with k by lia. f_equal.
    rewrite <- IH. apply sum_ext. intros j Hj. apply in_upto in Hj.
    rewrite at_cons by lia. f_equal. lia.
Qed.

Lemma length_map_upto {A} (f : Z -> A) n : length (map f (upto n)) = Z.to_nat n.
Proof.
  rewrite map_length. destruct (Z.leb_spec 0 n).
  - pose proof (length_upto n). lia.
  - destruct (upto n) as [|x l] eqn:E; [cbn; lia|].
    assert (In x (upto n)) by (rewrite E; left; auto). rewrite in_upto in *. lia.
Qed.

Lemma at_map_upto f n i : 0 <= i < n -> at_ (map f (upto n)) i = f i.
Proof.
  intros. unfold at_. rewrite <- (Z2Nat.id n) by lia. rewrite upto_range.
  unfold range. rewrite map_map.
  rewrite (nth_map_lt (fun x => f (Z.of_nat x)) (seq 0 (Z.to_nat n)) (Z.to_nat i) 0%nat)
    by (rewrite seq_length; lia).
  rewrite seq_nth by lia. f_equal. lia.
Qed.

Lemma at_firstn l i m : 0 <= i < m -> at_ (firstn (Z.to_nat m) l) i = at_ l i.
Proof.
  unfold at_. intros H. assert (Hn : (Z.to_nat i < Z.to_nat m)%nat) by lia.
  generalize dependent (Z.to_nat m). generalize (Z.to_nat i). clear.
  intros j. revert l. induction j as [|j IH]; intros [|x l] [|m] H; cbn; try lia; auto.
  apply IH. lia.
Qed.

Lemma at_skipn l i m : 0 <= i -> 0 <= m -> at_ (skipn (Z.to_nat m) l) i = at_ l (m + i).
Proof.
  unfold at_. intros. replace (Z.to_nat (m + i)) with (Z.to_nat m + Z.to_nat i)%nat by lia.
  generalize (Z.to_nat m) as k. generalize (Z.to_nat i) as j. clear. intros j k. revert l.
  induction k as [|k IH]; intros [|x l]; cbn; auto.
  destruct j; auto.
Qed.

(** * Alias tables *)

Section Alias.
  Variables B c : Z.
  Hypothesis HB : 0 <= c <= B /\ B <= 64.
  Let C := 2 ^ c.
  Let H := 2 ^ (B - c).

  Lemma C_pos : 0 < C.
  Proof. apply Z.pow_pos_nonneg; lia. Qed.

  Lemma H_pos : 0 < H.
  Proof. apply Z.pow_pos_nonneg; lia. Qed.

  Definition item_bits (entries : list Z) (u : Z) : Z := Z.min u (at_ entries (u mod C)) mod C.

  Definition own (j P : Z) : Z :=
    Z.max 0 (Z.min H (P / C + (if j <=? P mod C then 1 else 0))).

  Lemma item_of_column entries h j :
    0 <= h -> 0 <= j < C -> 0 <= at_ entries j ->
    let P := at_ entries j in
    item_bits entries (h * C + j)
    = if h <? P / C + (if j <=? P mod C then 1 else 0) then j else P mod C.
  Proof.
    intros Hh Hj HP P. unfold item_bits. pose proof C_pos.
    assert (M : (h * C + j) mod C = j).
    { rewrite Z.add_comm, Z.mod_add by lia. apply Z.mod_small. lia. }
    rewrite M. fold P. pose proof (Z.div_mod P C ltac:(lia)) as E.
    pose proof (Z.mod_pos_bound P C ltac:(lia)) as Ha.
    set (q := P / C) in *. set (a := P mod C) in *.
    assert (Q : h < q -> h * C + C <= q * C) by (intros; nia).
    assert (R : q < h -> q * C + C <= h * C) by (intros; nia).
    destruct (Z.leb_spec j a) as [L|L].
    - destruct (Z.ltb_spec h (q + 1)).
      + rewrite Z.min_l by (destruct (Z.eq_dec h q); [subst h; lia|lia]). exact M.
      + rewrite Z.min_r by lia. reflexivity.
    - destruct (Z.ltb_spec h (q + 0)).
      + rewrite Z.min_l by lia. exact M.
      + rewrite Z.min_r by (destruct (Z.eq_dec h q); [subst h; lia|lia]). reflexivity.
  Qed.

  Lemma count_column entries j i :
    0 <= j < C -> 0 <= at_ entries j ->
    let P := at_ entries j in
    sum (fun h => b2z (item_bits entries (h * C + j) =? i)) (upto H)
    = b2z (j =? i) * own j P + b2z (P mod C =? i) * (H - own j P).
  Proof.
    intros Hj HP P. pose proof H_pos.
    set (o := own j P).
    set (F := fun h => b2z (j =? i) * Z.min h o + b2z (P mod C =? i) * (h - Z.min h o)).
    assert (O : 0 <= o <= H) by (unfold o, own; lia).
    rewrite (sum_telescope _ F).
    - unfold F. rewrite !Z.min_r, Z.min_l by lia. lia.
    - lia.
    - intros h Hh. rewrite item_of_column by lia. fold P. unfold F.
      destruct (Z.ltb_spec h (P / C + (if j <=? P mod C then 1 else 0))) as [L|L].
      + assert (h < o) by (unfold o, own; lia). rewrite !Z.min_l by lia. lia.
      + assert (o <= h) by (unfold o, own; lia). rewrite !Z.min_r by lia. lia.
  Qed.

  Definition of_item (i : Z) (p : Z * Z) : Z := if fst p =? i then snd p else 0.

  Lemma sum_shares i entries : forall k,
    sum (of_item i) (shares B c k entries)
    = isum (fun j P => b2z (j =? i) * own j P + b2z (P mod C =? i) * (H - own j P)) k entries.
  Proof.
    induction entries as [|P l IH]; intros k; cbn [shares sum isum]; [reflexivity|].
    rewrite IH. unfold of_item, own, C, H. cbn [fst snd].
    destruct (k =? i), (P mod 2 ^ c =? i); cbn [b2z]; lia.
  Qed.

  Definition ok (entries : list Z) : Prop :=
    Z.of_nat (length entries) = C /\ forall P, In P entries -> 0 <= P.

  Lemma count_item entries i :
    ok entries ->
    count (words 64) (fun w => item B c entries w =? i)
    = 2 ^ (64 - B) * sum (of_item i) (shares B c 0 entries).
  Proof.
    intros [L N]. rewrite count_sum.
    rewrite (sum_ext _ (fun w => b2z (item_bits entries (high_bits B w) =? i))) by reflexivity.
    rewrite (sum_high_bits (fun u => b2z (item_bits entries u =? i))) by lia.
    f_equal. rewrite words_upto. replace (2 ^ B) with (H * C)
      by (unfold H, C; rewrite <- Z.pow_add_r by lia; f_equal; lia).
    pose proof C_pos. pose proof H_pos.
    rewrite sum_columns, sum_shares, <- sum_isum, L by lia.
    apply sum_ext. intros j Hj. apply in_upto in Hj.
    rewrite count_column; auto.
    apply N, at_in. lia.
  Qed.

  Lemma shares_nonneg entries : forall k p, 0 <= k -> In p (shares B c k entries) -> 0 <= fst p /\ 0 <= snd p.
  Proof.
    induction entries as [|P l IH]; intros k p Hk; cbn [shares In]; [easy|].
    pose proof H_pos. unfold H in *. pose proof C_pos. unfold C in *.
    intros [<-|[<-|Hi]].
    - cbn [fst snd]. lia.
    - cbn [fst snd]. pose proof (Z.mod_pos_bound P (2 ^ c) ltac:(lia)). lia.
    - apply (IH (k + 1)); auto. lia.
  Qed.

  Lemma find_tally l i :
    0 <= i -> (forall p, In p l -> 0 <= fst p) -> find 0 (tally l) i = sum (of_item i) l.
  Proof.
    unfold tally. induction l as [|[j n] l IH]; cbn [fold_right sum]; intros Hi Hp.
    - apply find_empty.
    - pose proof (Hp (j, n) ltac:(left; auto)) as Hj. cbn [fst snd] in *.
      rewrite find_put by lia. rewrite IH by (auto; intros; apply Hp; right; auto).
      unfold of_item at 2. cbn [fst snd]. destruct (Z.eqb_spec j i) as [->|]; [|lia].
      rewrite IH by (auto; intros; apply Hp; right; auto). lia.
  Qed.

  Lemma at_weights entries i :
    0 <= i < C -> at_ (weights B c entries) i = sum (of_item i) (shares B c 0 entries).
  Proof.
    intros Hi. unfold weights. fold C. rewrite at_map_upto by auto.
    apply find_tally; [lia|]. intros p Hp. apply shares_nonneg in Hp; lia.
  Qed.

  Lemma item_range entries w : 0 <= item B c entries w < C.
  Proof. unfold item. apply Z.mod_pos_bound, C_pos. Qed.
End Alias.

Lemma count_zero {W} (ws : list W) P w : count ws P = 0 -> In w ws -> P w = false.
Proof.
  rewrite count_sum. induction ws as [|x l IH]; cbn [sum In]; [easy|].
  assert (0 <= sum (fun v => b2z (P v)) l)
    by (apply sum_nonneg; intros v _; destruct (P v); cbn [b2z]; lia).
  intros E [->|Hi].
  - destruct (P w); cbn [b2z] in *; [lia|auto].
  - apply IH; auto. destruct (P x); cbn [b2z] in *; lia.
Qed.

(** A checked alias table gives item i of m as many words as its weights say, and others none. *)
Record samples (B c m : Z) (entries : list Z) : Prop := {
  s_bits : 0 <= B <= 64;
  s_range : forall w, In w (words 64) -> 0 <= item B c entries w < m;
  s_count : forall i, 0 <= i < m ->
    count (words 64) (fun w => item B c entries w =? i)
    = 2 ^ (64 - B) * at_ (first_weights B c m entries) i;
  s_length : Z.of_nat (length (first_weights B c m entries)) = m }.

Lemma alias_samples B c m entries : alias_is_drawn B c m entries = true -> samples B c m entries.
Proof.
  unfold alias_is_drawn. rewrite !andb_true_iff, !Z.leb_le, Z.eqb_eq, !forallb_in.
  intros [[[[[[[H1 H2] H3] H4] H5] H6] H7] H8].
  assert (HB : 0 <= c <= B /\ B <= 64) by lia.
  assert (OK : ok c entries) by (split; [exact H6|intros P HP; apply H7 in HP; lia]).
  assert (LW : length (weights B c entries) = Z.to_nat (2 ^ c)) by apply length_map_upto.
  constructor.
  - lia.
  - intros w Hw. pose proof (item_range B c HB entries w) as R. split; [lia|].
    destruct (Z.ltb_spec (item B c entries w) m) as [|L]; [auto|exfalso].
    set (i := item B c entries w) in *.
    assert (E : count (words 64) (fun w => item B c entries w =? i) = 0).
    { rewrite count_item, <- at_weights by (auto; lia).
      replace i with (m + (i - m)) by lia. rewrite <- at_skipn by lia.
      assert (K : In (at_ (skipn (Z.to_nat m) (weights B c entries)) (i - m))
                     (skipn (Z.to_nat m) (weights B c entries))).
      { apply at_in. rewrite skipn_length, LW. lia. }
      apply H8, Z.eqb_eq in K. rewrite K. lia. }
    pose proof (count_zero _ _ w E Hw) as F. cbn beta in F. fold i in F.
    rewrite Z.eqb_refl in F. discriminate.
  - intros i Hi. unfold first_weights. rewrite at_firstn by auto.
    rewrite count_item, at_weights by (auto; lia). reflexivity.
  - unfold first_weights. rewrite firstn_length, LW. lia.
Qed.

(** * Tables *)

Lemma at_map2 (f : Z -> Z -> Z) l k o :
  0 <= o < Z.of_nat (length l) -> length l = length k ->
  at_ (map (fun p => f (fst p) (snd p)) (combine l k)) o = f (at_ l o) (at_ k o).
Proof.
  intros Ho E. unfold at_.
  rewrite (nth_map_lt _ (combine l k) (Z.to_nat o) (0, 0)) by (rewrite combine_length; lia).
  rewrite combine_nth by auto. reflexivity.
Qed.

Lemma columns_bound (f : Z -> Z -> Z) (R : Z -> Z -> Prop) m rows :
  (forall x, R x x) -> (forall x y z, R x y -> R y z -> R x z) ->
  (forall x y, R x (f x y)) -> (forall x y, R y (f x y)) ->
  (forall x y, f x y = x \/ f x y = y) ->
  (forall r, In r rows -> length r = m) -> rows <> [] ->
  length (columns_of f rows) = m /\
  forall o, 0 <= o < Z.of_nat m ->
    (forall r, In r rows -> R (at_ r o) (at_ (columns_of f rows) o)) /\
    (exists r, In r rows /\ at_ (columns_of f rows) o = at_ r o).
Proof.
  intros Hr Ht H1 H2 H3. destruct rows as [|first others]; [easy|]. intros HL _.
  cbn [columns_of].
  assert (Hf : length first = m) by (apply HL; left; auto).
  assert (HO : forall r, In r others -> length r = m) by (intros; apply HL; right; auto).
  clear HL.
  set (step := fun most r => map (fun p => f (fst p) (snd p)) (combine most r)).
  assert (G : forall others acc, length acc = m -> (forall r, In r others -> length r = m) ->
    length (fold_left step others acc) = m /\
    forall o, 0 <= o < Z.of_nat m ->
      R (at_ acc o) (at_ (fold_left step others acc) o) /\
      (forall r, In r others -> R (at_ r o) (at_ (fold_left step others acc) o)) /\
      (at_ (fold_left step others acc) o = at_ acc o
       \/ exists r, In r others /\ at_ (fold_left step others acc) o = at_ r o)).
  { clear - Hr Ht H1 H2 H3. induction others as [|r others IH]; intros acc La Lo; cbn [fold_left].
    - split; auto. intros. split; auto. split; [easy|auto].
    - assert (Lr : length r = m) by (apply Lo; left; auto).
      assert (Ls : length (step acc r) = m)
        by (unfold step; rewrite map_length, combine_length; lia).
      destruct (IH (step acc r) Ls ltac:(intros; apply Lo; right; auto)) as [L K].
      split; auto. intros o Ho. destruct (K o Ho) as (K1 & K2 & K3).
      assert (E : at_ (step acc r) o = f (at_ acc o) (at_ r o)) by (apply at_map2; lia).
      rewrite E in K1, K3. split; [eauto|]. split.
      + intros r' [<-|Hr']; [eauto|auto].
      + destruct K3 as [K3|(r' & Hr' & K3)].
        * destruct (H3 (at_ acc o) (at_ r o)) as [E'|E']; rewrite E' in K3; [auto|].
          right. exists r. split; [left; auto|auto].
        * right. exists r'. split; [right; auto|auto]. }
  destruct (G others first Hf HO) as [L K]. split; auto.
  intros o Ho. destruct (K o Ho) as (K1 & K2 & K3). split.
  - intros r [<-|Hr']; auto.
  - destruct K3 as [K3|(r & Hr' & K3)]; [exists first; split; [left; auto|auto]|].
    exists r. split; [right; auto|auto].
Qed.

Lemma combine_at (l k : list Z) o :
  length l = length k -> 0 <= o < Z.of_nat (length l) -> In (at_ l o, at_ k o) (combine l k).
Proof.
  intros E Ho. unfold at_. rewrite <- combine_nth by auto. apply nth_In. rewrite combine_length. lia.
Qed.

Lemma combine_at_inv (l k : list Z) p :
  length l = length k -> In p (combine l k) ->
  exists o, 0 <= o < Z.of_nat (length l) /\ p = (at_ l o, at_ k o).
Proof.
  intros E Hp. apply (In_nth _ _ (0, 0)) in Hp. destruct Hp as (n & Hn & <-).
  rewrite combine_length in Hn. exists (Z.of_nat n). split; [lia|].
  rewrite combine_nth by auto. unfold at_. rewrite Nat2Z.id. reflexivity.
Qed.

Definition counts_of (counts : list (list Z)) (y : Z) : list Z := nth (Z.to_nat y) counts [].

Lemma table_ratio_iff num den m counts :
  (forall r, In r counts -> Z.of_nat (length r) = m) -> counts <> [] -> 0 <= m ->
  0 < den ->
  table_ratio num den counts = true <->
  den <= num /\
  forall r r' o, In r counts -> In r' counts -> 0 <= o < m -> den * at_ r o <= num * at_ r' o.
Proof.
  intros HL Hne Hm Hd.
  destruct (columns_bound Z.max Z.le (Z.to_nat m) counts) as [L1 K1];
    try (intros; lia); auto; [intros r Hr; specialize (HL r Hr); lia|].
  destruct (columns_bound Z.min (fun x y => y <= x) (Z.to_nat m) counts) as [L2 K2];
    try (intros; lia); auto; [intros r Hr; specialize (HL r Hr); lia|].
  unfold table_ratio. rewrite andb_true_iff, Z.leb_le, forallb_in. split.
  - intros [H0 H]. split; auto. intros r r' o Hr Hr' Ho.
    destruct (K1 o ltac:(lia)) as [A1 _], (K2 o ltac:(lia)) as [A2 _].
    specialize (A1 r Hr). specialize (A2 r' Hr').
    specialize (H _ (combine_at (columns_of Z.max counts) (columns_of Z.min counts) o ltac:(lia) ltac:(lia))).
    rewrite Z.leb_le in H. cbn [fst snd] in H.
    assert (den * at_ r o <= den * at_ (columns_of Z.max counts) o) by (apply Z.mul_le_mono_nonneg_l; lia).
    assert (num * at_ (columns_of Z.min counts) o <= num * at_ r' o) by (apply Z.mul_le_mono_nonneg_l; lia).
    lia.
  - intros [H0 H]. split; auto. intros p Hp. rewrite Z.leb_le.
    apply combine_at_inv in Hp; [|lia]. destruct Hp as (o & Ho & ->). cbn [fst snd].
    destruct (K1 o ltac:(lia)) as [_ (r & Hr & ->)], (K2 o ltac:(lia)) as [_ (r' & Hr' & ->)].
    apply H; auto. lia.
Qed.

Lemma table_counts_private num den B m counts {W} (ws : list W) (out : Z -> W -> Z) scale :
  table_check num den B m counts = true -> 0 <= scale ->
  (forall y w, row (Z.of_nat (length counts)) y -> In w ws -> 0 <= out y w < m) ->
  (forall y o, row (Z.of_nat (length counts)) y -> 0 <= o < m ->
     count ws (fun w => out y w =? o) = scale * at_ (counts_of counts y) o) ->
  private num den (row (Z.of_nat (length counts))) ws out.
Proof.
  unfold table_check, table_is_drawn. rewrite !andb_true_iff, Z.ltb_lt, !Z.leb_le, forallb_in.
  intros [[Hd [[[H1 H2] H3] HL]] Hr] Hs Hin Hc.
  assert (LL : forall r, In r counts -> Z.of_nat (length r) = m).
  { intros r Hr'. apply HL in Hr'. rewrite !andb_true_iff, Z.eqb_eq in Hr'. tauto. }
  assert (IN : forall y, row (Z.of_nat (length counts)) y -> In (counts_of counts y) counts).
  { intros y Hy. unfold row in Hy. apply nth_In. lia. }
  apply private_of_points with (os := upto m).
  - apply nodup_upto.
  - intros. apply in_upto. apply Hin; auto.
  - intros y y' o Hy Hy' Ho. apply in_upto in Ho. rewrite !Hc by auto.
    apply (table_ratio_iff num den m) in Hr; auto; try lia.
    + destruct Hr as [_ Hr]. specialize (Hr _ _ o (IN y Hy) (IN y' Hy') Ho).
      rewrite !(Z.mul_shuffle3 _ scale). apply Z.mul_le_mono_nonneg_l; auto.
    + intros ->. unfold row in Hy. cbn in Hy. lia.
Qed.

Theorem table_check_exact_proof num den B m counts :
  0 < den <= num -> counts <> [] -> table_is_drawn B m counts = true ->
  table_check num den B m counts = true <->
  forall r r' o, In r counts -> In r' counts -> 0 <= o < m -> den * at_ r o <= num * at_ r' o.
Proof.
  intros Hd Hne HD. unfold table_check. rewrite HD, !andb_true_iff, Z.ltb_lt.
  unfold table_is_drawn in HD. rewrite !andb_true_iff, !Z.leb_le, forallb_in in HD.
  destruct HD as [[[H1 H2] H3] HL].
  rewrite (table_ratio_iff num den m) by
    (auto; try lia; intros r Hr'; apply HL in Hr'; rewrite !andb_true_iff, Z.eqb_eq in Hr'; tauto).
  split; [tauto|]. intros H. repeat split; auto; lia.
Qed.

Theorem table_private_proof num den B c m rows :
  table_file_check num den B c m rows = true ->
  private num den (row (Z.of_nat (length rows))) (words 64) (table_out B c rows).
Proof.
  unfold table_file_check. rewrite andb_true_iff, forallb_in. intros [HA HC].
  assert (EL : length (map (first_weights B c m) rows) = length rows) by apply map_length.
  assert (SA : forall y, row (Z.of_nat (length rows)) y -> samples B c m (nth (Z.to_nat y) rows [])).
  { intros y Hy. apply alias_samples, HA, nth_In. unfold row in Hy. lia. }
  rewrite <- EL.
  apply (table_counts_private num den B m _ (words 64) _ (2 ^ (64 - B)) HC).
  - apply Z.pow_nonneg. lia.
  - rewrite EL. intros y w Hy Hw. apply (s_range _ _ _ _ (SA y Hy)); auto.
  - rewrite EL. intros y o Hy Ho. unfold table_out.
    rewrite (s_count _ _ _ _ (SA y Hy)) by auto. unfold counts_of.
    rewrite (nth_map_lt _ _ _ []) by (unfold row in Hy; lia). reflexivity.
Qed.
