(** Windows are private, whatever chooses the offset. *)

From Coq Require Import ZArith List Lia Bool FMapPositive.
From LabelDP Require Import Draw Check Counting Lines.
Import ListNotations.
Open Scope Z_scope.

Lemma map_snd_combine {A B} (l : list A) (k : list B) :
  length l = length k -> map snd (combine l k) = k.
Proof. revert k. induction l; destruct k; simpl; intros; try easy. f_equal. apply IHl. lia. Qed.

Lemma map_fst_combine {A B} (l : list A) (k : list B) :
  length l = length k -> map fst (combine l k) = l.
Proof. revert k. induction l; destruct k; simpl; intros; try easy. f_equal. apply IHl. lia. Qed.

Lemma length_upto_nat n : length (upto (Z.of_nat n)) = n.
Proof. pose proof (length_upto (Z.of_nat n) ltac:(lia)). lia. Qed.

Lemma base_line_fst w : map fst (base_line w) = base w.
Proof. apply map_fst_combine. symmetry. apply length_upto_nat. Qed.

Lemma base_line_snd w : map snd (base_line w) = upto (outputs w).
Proof. apply map_snd_combine. symmetry. apply length_upto_nat. Qed.

Lemma base_line_length w : length_of (base_line w) = base_total w.
Proof. unfold length_of. rewrite base_line_fst. reflexivity. Qed.

Lemma before_whole l i p :
  lengths_ok l -> length_of l <= p ->
  before l i p = sum (fun s => if snd s =? i then fst s else 0) l.
Proof.
  unfold length_of. revert p. induction l as [|[n j] l IH]; cbn [before sum]; intros p Hl Hp; [reflexivity|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  change (total (map fst ((n, j) :: l))) with (n + total (map fst l)) in Hp.
  pose proof (length_of_nonneg l Hl) as H0. unfold length_of in H0.
  rewrite IH by (auto; lia). cbn [fst snd]. destruct (j =? i); lia.
Qed.

Lemma sum_of_output l b i :
  NoDup (map snd l) -> In (b, i) l -> sum (fun s : Z * Z => if snd s =? i then fst s else 0) l = b.
Proof.
  induction l as [|[n j] l IH]; cbn [map snd sum In fst]; intros Hn Hi; [easy|].
  inversion Hn as [|? ? Hnot Hn']; subst. destruct Hi as [E|Hi].
  - inversion E; subst. rewrite Z.eqb_refl.
    rewrite (sum_ext _ (fun _ => 0)); [rewrite sum_const; lia|].
    intros [n' j'] Hx. cbn [fst snd]. destruct (Z.eqb_spec j' i) as [->|]; [|reflexivity].
    exfalso. apply Hnot. apply in_map_iff. exists (n', i). auto.
  - rewrite IH by auto. destruct (Z.eqb_spec j i) as [->|]; [|lia].
    exfalso. apply Hnot. apply in_map_iff. exists (b, i). auto.
Qed.

(** What the check of the form says. *)
Record drawn (w : window) : Prop := {
  d_bits : 1 <= bits w <= 64;
  d_base : forall b, In b (base w) -> 1 <= b;
  d_extra : forall n i, In (n, i) (extra w) -> 1 <= n /\ 0 <= i < outputs w;
  d_width : 0 <= width w;
  d_last : width w <= length_of (extra w);
  d_offsets : forall s, In s (offsets w) -> in_range w s }.

Lemma forallb_in {A} (f : A -> bool) l : forallb f l = true <-> forall x, In x l -> f x = true.
Proof. apply forallb_forall. Qed.

Lemma is_drawn_iff w : window_is_drawn w = true <-> drawn w.
Proof.
  unfold window_is_drawn. rewrite !andb_true_iff, !Z.leb_le, !forallb_in. split.
  - intros ((((((H1 & H2) & H3) & H4) & H5) & H6) & H7). constructor; try lia.
    + intros b Hb. apply H3 in Hb. lia.
    + intros n i Hi. apply H4 in Hi. cbn [fst snd] in Hi. lia.
    + intros s Hs. apply H7 in Hs. unfold in_range. lia.
  - intros [H1 H2 H3 H4 H5 H6]. repeat split; try lia.
    + intros b Hb. apply H2 in Hb. lia.
    + intros [n i] Hi. apply H3 in Hi. cbn [fst snd]. lia.
    + intros s Hs. apply H6 in Hs. unfold in_range in Hs. lia.
Qed.

Section OneWindow.
  Variable w : window.
  Hypothesis D : drawn w.

  Lemma base_line_ok : lengths_ok (base_line w).
  Proof.
    intros n j Hi. apply (in_map fst) in Hi. rewrite base_line_fst in Hi. apply (d_base w D) in Hi.
    cbn in Hi. lia.
  Qed.

  Lemma extra_ok : lengths_ok (extra w).
  Proof. intros n j Hi. apply (d_extra w D) in Hi. lia. Qed.

  Lemma base_total_nonneg : 0 <= base_total w.
  Proof. rewrite <- base_line_length. apply length_of_nonneg, base_line_ok. Qed.

  Lemma words_split : 2 ^ bits w = base_total w + width w.
  Proof. unfold width. lia. Qed.

  Definition base_of (i : Z) : Z := sum (fun s => if snd s =? i then fst s else 0) (base_line w).
  Definition overlap (s i : Z) : Z := before (extra w) i (s + width w) - before (extra w) i s.

  Lemma base_of_in b i : In (b, i) (base_line w) -> base_of i = b.
  Proof. intros. apply sum_of_output; auto. rewrite base_line_snd. apply nodup_upto. Qed.

  Lemma base_in i : 0 <= i < outputs w -> exists b, In (b, i) (base_line w).
  Proof.
    intros H. apply in_upto in H. rewrite <- base_line_snd in H. apply in_map_iff in H.
    destruct H as ([b j] & E & Hi). cbn in E. subst. exists b. auto.
  Qed.

  Lemma overlap_nonneg s i : 0 <= overlap s i.
  Proof.
    unfold overlap. pose proof (d_width w D).
    pose proof (before_mono (extra w) i s (s + width w) extra_ok ltac:(lia)). lia.
  Qed.

  (** The draw of a word of B bits. *)
  Definition draw_bits (s u : Z) : Z :=
    owner (base_line w ++ extra w) (if u <? base_total w then u else u + s).

  Lemma draw_bits_below s u : 0 <= u < base_total w -> draw_bits s u = owner (base_line w) u.
  Proof.
    intros. unfold draw_bits. destruct (Z.ltb_spec u (base_total w)); [|lia].
    rewrite owner_app by (try apply base_line_ok; lia). rewrite base_line_length.
    destruct (Z.ltb_spec u (base_total w)); [reflexivity|lia].
  Qed.

  Lemma draw_bits_above s u :
    0 <= s -> base_total w <= u -> draw_bits s u = owner (extra w) (u - base_total w + s).
  Proof.
    intros. unfold draw_bits. destruct (Z.ltb_spec u (base_total w)); [lia|].
    pose proof base_total_nonneg.
    rewrite owner_app by (try apply base_line_ok; lia). rewrite base_line_length.
    destruct (Z.ltb_spec (u + s) (base_total w)); [lia|]. f_equal. lia.
  Qed.

  Lemma count_bits s i :
    in_range w s ->
    sum (fun u => b2z (draw_bits s u =? i)) (words (bits w)) = base_of i + overlap s i.
  Proof.
    intros [Hs Hlast]. rewrite words_upto, words_split.
    pose proof base_total_nonneg as HT. pose proof (d_width w D) as HX.
    set (T := base_total w) in *.
    set (F := fun u => if u <=? T then before (base_line w) i u
                       else before (base_line w) i T + before (extra w) i (u - T + s)
                            - before (extra w) i s).
    assert (HF : forall u, 0 <= u < T + width w -> b2z (draw_bits s u =? i) = F (u + 1) - F u).
    { intros u Hu. unfold F. destruct (Z.ltb_spec u T).
      - rewrite draw_bits_below by (unfold T in *; lia).
        destruct (Z.leb_spec u T), (Z.leb_spec (u + 1) T); try lia.
        symmetry. apply before_step; [apply base_line_ok|].
        rewrite base_line_length. unfold T in *. lia.
      - rewrite draw_bits_above by (unfold T in *; lia). fold T.
        rewrite <- before_step by (try apply extra_ok; lia).
        destruct (Z.leb_spec u T), (Z.leb_spec (u + 1) T); try lia.
        + assert (u = T) as -> by lia. replace (T + 1 - T + s) with (T - T + s + 1) by lia.
          replace (T - T + s) with s by lia. lia.
        + replace (u + 1 - T + s) with (u - T + s + 1) by lia. lia. }
    rewrite (sum_telescope _ F) by (auto; lia).
    unfold F, base_of, overlap. rewrite (before_nonpos (base_line w) i 0) by (apply base_line_ok || lia).
    rewrite <- (before_whole (base_line w) i T) by (try apply base_line_ok; rewrite base_line_length; fold T; lia).
    destruct (Z.leb_spec 0 T); [|lia].
    destruct (Z.leb_spec (T + width w) T).
    - assert (width w = 0) as -> by lia. rewrite !Z.add_0_r. lia.
    - replace (T + width w - T + s) with (s + width w) by lia. lia.
  Qed.

  (** #{word : the window at s answers i}, of 64-bit words. *)
  Lemma count_words s i :
    in_range w s ->
    count (words 64) (fun v => window_draw w s v =? i)
    = 2 ^ (64 - bits w) * (base_of i + overlap s i).
  Proof.
    intros Hs. rewrite count_sum.
    rewrite (sum_ext _ (fun v => b2z (draw_bits s (high_bits (bits w) v) =? i))) by reflexivity.
    rewrite (sum_high_bits (fun u => b2z (draw_bits s u =? i))) by (pose proof (d_bits w D); lia).
    rewrite count_bits by auto. reflexivity.
  Qed.

  Lemma draw_in s v :
    in_range w s -> In v (words 64) -> In (window_draw w s v) (upto (outputs w)).
  Proof.
    intros [Hs Hlast] Hv. pose proof (d_bits w D).
    pose proof (high_bits_range (bits w) v ltac:(lia) Hv) as Hu. rewrite words_split in Hu.
    change (In (draw_bits s (high_bits (bits w) v)) (upto (outputs w))).
    set (u := high_bits (bits w) v) in *. pose proof base_total_nonneg.
    destruct (Z.ltb_spec u (base_total w)).
    - rewrite draw_bits_below by lia. rewrite <- base_line_snd. apply owner_in; [apply base_line_ok|].
      rewrite base_line_length. lia.
    - rewrite draw_bits_above by lia.
      assert (Hin : In (owner (extra w) (u - base_total w + s)) (map snd (extra w)))
        by (apply owner_in; [apply extra_ok|lia]).
      apply in_map_iff in Hin. destruct Hin as ([n i] & <- & Hi).
      apply in_upto. apply (d_extra w D) in Hi. cbn [snd]. lia.
  Qed.

  (** * The ratio *)

  Definition places_found (i : Z) : list (Z * Z) :=
    find [] (places (extra w) 0 (PositiveMap.empty _)) i.

  Lemma places_found_eq i : 0 <= i -> places_found i = rev (places_of (extra w) i 0).
  Proof.
    intros. unfold places_found. rewrite find_places; auto.
    - rewrite find_empty, app_nil_r. reflexivity.
    - intros n j Hj. apply (d_extra w D) in Hj. lia.
  Qed.

  Lemma places_found_bounds i a b : 0 <= i -> In (a, b) (places_found i) -> 0 <= a <= b.
  Proof.
    intros Hi. rewrite places_found_eq, <- in_rev by auto. apply places_of_bounds. apply extra_ok.
  Qed.

  Lemma before_places_found i p : 0 <= i -> before_places (places_found i) p = before (extra w) i p.
  Proof.
    intros. rewrite places_found_eq by auto. unfold before_places. rewrite sum_rev.
    change (before_places (places_of (extra w) i 0) p = before (extra w) i p).
    rewrite before_places_of by apply extra_ok. f_equal. lia.
  Qed.

  Lemma covered_overlap i s : 0 <= i -> covered (places_found i) s (s + width w) = overlap s i.
  Proof.
    intros. pose proof (d_width w D).
    rewrite covered_before by (try lia; intros a b Hab; apply places_found_bounds in Hab; auto; lia).
    rewrite !before_places_found by auto. reflexivity.
  Qed.

  Definition most (i : Z) : Z :=
    most_covered (places_found i) (width w) (length_of (extra w) - width w).

  Lemma overlap_most i s : 0 <= i -> in_range w s -> overlap s i <= most i.
  Proof.
    intros Hi Hs. rewrite <- covered_overlap by auto. apply covered_most.
    - apply (d_width w D).
    - intros a b Hab. apply places_found_bounds in Hab; auto. lia.
    - intros p q Hp. rewrite !before_places_found by auto.
      apply before_lipschitz; auto. apply extra_ok.
    - apply Hs.
  Qed.

  Lemma most_reached i : 0 <= i -> 0 < most i -> exists s, in_range w s /\ most i = overlap s i.
  Proof.
    intros Hi Hm. pose proof (d_last w D).
    destruct (most_covered_reached (places_found i) (width w) (length_of (extra w) - width w))
      as (s & Hs & E); auto; try lia.
    - intros a b Hab. apply places_found_bounds in Hab; auto. lia.
    - exists s. split; [exact Hs|]. unfold most. rewrite E. apply covered_overlap; auto.
  Qed.

  Lemma ratio_iff num den :
    0 < den ->
    window_ratio num den w = true <->
    den <= num /\
    forall i s, 0 <= i < outputs w -> in_range w s ->
      den * (base_of i + overlap s i) <= num * base_of i.
  Proof.
    intros Hd. unfold window_ratio. rewrite andb_true_iff, Z.leb_le, forallb_in. split.
    - intros [H0 H]. split; auto. intros i s Hi Hs. destruct (base_in i Hi) as [b Hb].
      pose proof (H (b, i) Hb) as R. rewrite Z.leb_le in R. cbn [fst snd] in R.
      change (den * (b + most i) <= num * b) in R.
      rewrite (base_of_in b i) by auto. pose proof (overlap_most i s ltac:(lia) Hs). nia.
    - intros [H0 H]. split; auto. intros [b i] Hb. rewrite Z.leb_le. cbn [fst snd].
      change (den * (b + most i) <= num * b).
      assert (Hi : 0 <= i < outputs w)
        by (apply in_upto; rewrite <- base_line_snd; apply (in_map snd) in Hb; exact Hb).
      assert (1 <= b) by (apply (d_base w D); rewrite <- base_line_fst; apply (in_map fst) in Hb; exact Hb).
      assert (0 <= most i) by apply most_covered_nonneg.
      destruct (Z.eq_dec (most i) 0) as [->|]; [nia|].
      destruct (most_reached i) as (s & Hs & ->); try lia.
      specialize (H i s Hi Hs). rewrite (base_of_in b i) in H by auto. exact H.
  Qed.

  Lemma window_private num den :
    0 < den -> window_ratio num den w = true ->
    private num den (in_range w) (words 64) (window_draw w).
  Proof.
    intros Hd Hr. apply (ratio_iff num den Hd) in Hr. destruct Hr as [H0 H].
    apply private_of_points with (os := upto (outputs w)).
    - apply nodup_upto.
    - intros. apply draw_in; auto.
    - intros s s' i Hs Hs' Hi. apply in_upto in Hi. rewrite !count_words by auto.
      specialize (H i s Hi Hs). pose proof (overlap_nonneg s' i).
      assert (0 < 2 ^ (64 - bits w)) by (apply Z.pow_pos_nonneg; pose proof (d_bits w D); lia).
      assert (num * base_of i <= num * (base_of i + overlap s' i))
        by (apply Z.mul_le_mono_nonneg_l; lia).
      rewrite !(Z.mul_shuffle3 _ (2 ^ (64 - bits w))).
      apply Z.mul_le_mono_nonneg_l; lia.
  Qed.
End OneWindow.

Lemma private_map {Y Y' W O} num den (label : Y -> Prop) (label' : Y' -> Prop) (ws : list W)
    (out : Y -> W -> O) (f : Y' -> Y) :
  (forall y, label' y -> label (f y)) ->
  private num den label ws out -> private num den label' ws (fun y => out (f y)).
Proof. intros Hf H y y' Hy Hy'. apply H; auto. Qed.

Lemma at_in l i : 0 <= i < Z.of_nat (length l) -> In (at_ l i) l.
Proof. intros. unfold at_. apply nth_In. lia. Qed.

Theorem window_offsets_private_proof num den w :
  window_check num den w = true ->
  private num den (in_range w) (words 64) (window_draw w).
Proof.
  unfold window_check. rewrite !andb_true_iff, Z.ltb_lt, is_drawn_iff.
  intros [[Hd D] Hr]. apply window_private; auto.
Qed.

Theorem window_rows_private_proof num den w :
  window_check num den w = true ->
  private num den (row (rows_of w)) (words 64) (window_out w).
Proof.
  intros H. apply (private_map num den (in_range w) _ _ (window_draw w) (at_ (offsets w))).
  - intros y Hy. unfold window_check in H. rewrite !andb_true_iff, is_drawn_iff in H.
    apply (d_offsets w); [tauto|]. apply at_in. exact Hy.
  - apply window_offsets_private_proof; auto.
Qed.

(** The check refuses no window that satisfies the condition at every offset in range. *)
Theorem window_check_exact_proof num den w :
  0 < den <= num -> window_is_drawn w = true ->
  window_check num den w = true <->
  forall i s, 0 <= i < outputs w -> in_range w s ->
    den * count (words 64) (fun v => window_draw w s v =? i)
    <= num * (2 ^ (64 - bits w) * at_ (base w) i).
Proof.
  intros Hd Hw. pose proof Hw as D. apply is_drawn_iff in D.
  assert (Hb : forall i, 0 <= i < outputs w -> base_of w i = at_ (base w) i).
  { intros i Hi. apply base_of_in. unfold base_line, at_.
    assert (E : nth (Z.to_nat i) (combine (base w) (upto (Z.of_nat (length (base w))))) (0, 0)
                = (nth (Z.to_nat i) (base w) 0, i)).
    { rewrite combine_nth by (symmetry; apply length_upto_nat). f_equal.
      rewrite upto_range. unfold range. change 0 with (Z.of_nat 0%nat) at 1.
      rewrite map_nth. unfold outputs in Hi. rewrite seq_nth by lia. lia. }
    rewrite <- E. apply nth_In. rewrite combine_length, length_upto_nat. unfold outputs in Hi. lia. }
  assert (P : 0 < 2 ^ (64 - bits w)) by (apply Z.pow_pos_nonneg; pose proof (d_bits w D); lia).
  unfold window_check. rewrite !andb_true_iff, Z.ltb_lt, (ratio_iff w D num den) by lia. split.
  - intros [_ [_ H]] i s Hi Hs. rewrite (count_words w D) by auto. rewrite <- Hb by auto.
    specialize (H i s Hi Hs). rewrite !(Z.mul_shuffle3 _ (2 ^ (64 - bits w))).
    apply Z.mul_le_mono_nonneg_l; lia.
  - intros H. split; [auto with zarith|]. split; [lia|]. intros i s Hi Hs.
    specialize (H i s Hi Hs). rewrite (count_words w D), <- Hb in H by auto.
    rewrite !(Z.mul_shuffle3 _ (2 ^ (64 - bits w))) in H.
    apply Z.mul_le_mono_pos_l in H; lia.
Qed.

(** * Tables by group: the common line holds each table's own lines *)

Lemma concat_split {A} (ls : list (list A)) g :
  (g < length ls)%nat -> concat ls = concat (firstn g ls) ++ nth g ls [] ++ concat (skipn (S g) ls).
Proof.
  revert g. induction ls as [|l ls IH]; intros [|g] H; cbn in H; try lia; cbn [firstn skipn nth concat].
  - reflexivity.
  - cbn. rewrite (IH g) at 1 by lia. rewrite <- app_assoc. reflexivity.
Qed.

Lemma lengths_ok_concat (ls : list line) :
  (forall l, In l ls -> lengths_ok l) -> lengths_ok (concat ls).
Proof. intros H n j Hi. apply in_concat in Hi. destruct Hi as (l & Hl & Hi). apply (H l Hl n j Hi). Qed.

Lemma length_of_concat (ls : list line) : length_of (concat ls) = total (map length_of ls).
Proof.
  induction ls as [|l ls IH]; [reflexivity|].
  cbn [concat map]. rewrite length_of_app, IH. reflexivity.
Qed.

Lemma owner_concat (ls : list line) g t :
  (forall l, In l ls -> lengths_ok l) -> (g < length ls)%nat -> 0 <= t < length_of (nth g ls []) ->
  owner (concat ls) (total (map length_of (firstn g ls)) + t) = owner (nth g ls []) t.
Proof.
  intros Hl Hg Ht. rewrite (concat_split ls g Hg) at 1.
  assert (H1 : forall l, In l (firstn g ls) -> lengths_ok l).
  { intros l Hi. apply Hl. rewrite <- (firstn_skipn g ls). apply in_or_app. auto. }
  assert (H2 : lengths_ok (nth g ls [])) by (apply Hl, nth_In; auto).
  pose proof (length_of_nonneg _ (lengths_ok_concat _ H1)) as Hp.
  rewrite length_of_concat in Hp.
  rewrite owner_app by (try apply lengths_ok_concat; auto; lia).
  rewrite length_of_concat.
  destruct (Z.ltb_spec (total (map length_of (firstn g ls)) + t) (total (map length_of (firstn g ls)))); [lia|].
  replace (total (map length_of (firstn g ls)) + t - total (map length_of (firstn g ls))) with t by lia.
  rewrite owner_app by (auto; lia).
  destruct (Z.ltb_spec t (length_of (nth g ls []))); [reflexivity|lia].
Qed.

Lemma nth_map_lt {A B} (f : A -> B) l g (d : A) (e : B) :
  (g < length l)%nat -> nth g (map f l) e = f (nth g l d).
Proof. revert g. induction l; intros [|g] H; cbn in *; try lia; auto. apply IHl. lia. Qed.

Lemma total_map_ext {A} (f g : A -> Z) l : (forall x, f x = g x) -> total (map f l) = total (map g l).
Proof. intros. f_equal. apply map_ext. auto. Qed.

Lemma grouped_is_window tables g y word :
  (forall w, In w tables -> drawn w) -> (g < length tables)%nat -> In word (words 64) ->
  let w := nth g tables (Window 0 [] [] []) in
  row (rows_of w) y ->
  grouped_out tables g y word = window_out w y word.
Proof.
  intros D Hg Hword w Hy.
  assert (Dw : drawn w) by (apply D, nth_In; auto).
  pose proof (d_bits w Dw) as HB.
  pose proof (high_bits_range (bits w) word ltac:(lia) Hword) as Hu.
  rewrite words_split in Hu. pose proof (base_total_nonneg w Dw) as HT.
  assert (Hr : in_range w (at_ (offsets w) y)) by (apply (d_offsets w Dw), at_in; exact Hy).
  destruct Hr as [Hs Hlast]. pose proof (d_width w Dw) as HX.
  unfold grouped_out, window_out. fold w. set (u := high_bits (bits w) word) in *.
  change (window_draw w (at_ (offsets w) y) word) with (draw_bits w (at_ (offsets w) y) u).
  set (s := at_ (offsets w) y) in *.
  assert (OB : forall l, In l (map base_line tables) -> lengths_ok l).
  { intros l Hl. apply in_map_iff in Hl. destruct Hl as (v & <- & Hv). apply base_line_ok. auto. }
  assert (OE : forall l, In l (map extra tables) -> lengths_ok l).
  { intros l Hl. apply in_map_iff in Hl. destruct Hl as (v & <- & Hv). apply extra_ok. auto. }
  assert (LB : forall ts, total (map length_of (map base_line ts)) = total (map base_total ts)).
  { intros ts. rewrite map_map. apply total_map_ext. apply base_line_length. }
  assert (NB : nth g (map base_line tables) [] = base_line w) by (apply nth_map_lt; auto).
  assert (NE : nth g (map extra tables) [] = extra w) by (apply nth_map_lt; auto).
  assert (P0 : 0 <= length_of (concat (map base_line tables)))
    by (apply length_of_nonneg, lengths_ok_concat; auto).
  unfold common_line.
  assert (FB : firstn g (map base_line tables) = map base_line (firstn g tables)) by apply firstn_map.
  assert (FE : firstn g (map extra tables) = map extra (firstn g tables)) by apply firstn_map.
  assert (S0 : 0 <= base_start tables g).
  { unfold base_start. rewrite <- LB, <- FB, <- length_of_concat. apply length_of_nonneg, lengths_ok_concat.
    intros l Hl. apply OB. rewrite <- (firstn_skipn g (map base_line tables)). apply in_or_app; auto. }
  assert (S1 : 0 <= total (map (fun v => length_of (extra v)) (firstn g tables))).
  { rewrite <- (map_map extra length_of), <- FE, <- length_of_concat. apply length_of_nonneg, lengths_ok_concat.
    intros l Hl. apply OE. rewrite <- (firstn_skipn g (map extra tables)). apply in_or_app; auto. }
  destruct (Z.ltb_spec u (base_total w)).
  - rewrite draw_bits_below by (auto; lia).
    rewrite owner_app by (try apply lengths_ok_concat; auto; lia).
    assert (E : u + base_start tables g
                = total (map length_of (firstn g (map base_line tables))) + u).
    { unfold base_start. rewrite FB, LB. lia. }
    assert (In_line : u + base_start tables g < length_of (concat (map base_line tables))).
    { rewrite E, length_of_concat. rewrite <- (firstn_skipn g (map base_line tables)) at 2.
      rewrite map_app, total_app.
      assert (K : skipn g (map base_line tables)
                  = base_line w :: skipn (S g) (map base_line tables)).
      { rewrite <- NB. clear - Hg. revert g Hg. induction tables as [|a l IH]; intros [|g] Hg; cbn in *; try lia; auto.
        apply IH. lia. }
      rewrite K. cbn [map].
      assert (0 <= total (map length_of (skipn (S g) (map base_line tables)))).
      { rewrite <- length_of_concat. apply length_of_nonneg, lengths_ok_concat. intros l Hl. apply OB.
        rewrite <- (firstn_skipn (S g) (map base_line tables)). apply in_or_app; auto. }
      change (total (length_of (base_line w) :: map length_of (skipn (S g) (map base_line tables))))
        with (length_of (base_line w) + total (map length_of (skipn (S g) (map base_line tables)))).
      rewrite base_line_length. lia. }
    destruct (Z.ltb_spec (u + base_start tables g) (length_of (concat (map base_line tables)))); [|lia].
    rewrite E, owner_concat; auto.
    + rewrite NB. reflexivity.
    + rewrite map_length; auto.
    + rewrite NB, base_line_length. lia.
  - rewrite draw_bits_above by (auto; lia).
    assert (LL : length_of (concat (map base_line tables)) = total (map base_total tables))
      by (rewrite length_of_concat; apply LB).
    rewrite owner_app by (try apply lengths_ok_concat; auto; unfold extra_start; lia).
    unfold extra_start.
    destruct (Z.ltb_spec (u + (total (map base_total tables)
        + total (map (fun v => length_of (extra v)) (firstn g tables)) - base_total w + s))
      (length_of (concat (map base_line tables)))); [lia|].
    rewrite LL.
    replace (u + (total (map base_total tables)
        + total (map (fun v => length_of (extra v)) (firstn g tables)) - base_total w + s)
        - total (map base_total tables))
      with (total (map length_of (firstn g (map extra tables))) + (u - base_total w + s))
      by (rewrite FE, map_map; lia).
    rewrite owner_concat; auto.
    + rewrite NE. reflexivity.
    + rewrite map_length; auto.
    + rewrite NE. lia.
Qed.

Lemma private_ext {Y W O} num den (label : Y -> Prop) (ws : list W) (out out' : Y -> W -> O) :
  (forall y w, label y -> In w ws -> out y w = out' y w) ->
  private num den label ws out -> private num den label ws out'.
Proof.
  intros E H y y' Hy Hy' S. specialize (H y y' Hy Hy' S).
  rewrite (count_ext ws (fun w => S (out y w)) (fun w => S (out' y w))) in H
    by (intros; rewrite E; auto).
  rewrite (count_ext ws (fun w => S (out y' w)) (fun w => S (out' y' w))) in H
    by (intros; rewrite E; auto).
  exact H.
Qed.

Theorem grouped_private_proof num den k tables g :
  grouped_check num den k tables = true -> (g < length tables)%nat ->
  private num den (row k) (words 64) (grouped_out tables g).
Proof.
  intros H Hg. unfold grouped_check in H. rewrite forallb_in in H.
  set (w := nth g tables (Window 0 [] [] [])).
  assert (Hw : In w tables) by (apply nth_In; auto).
  pose proof (H w Hw) as C. rewrite andb_true_iff, Z.eqb_eq in C. destruct C as [C <-].
  apply (private_ext num den) with (out := window_out w).
  - intros y v Hy Hv. symmetry. apply grouped_is_window; auto.
    intros x Hx. apply H in Hx. unfold window_check in Hx. rewrite !andb_true_iff, is_drawn_iff in Hx. tauto.
  - apply window_rows_private_proof. exact C.
Qed.
