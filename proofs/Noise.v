(** Additive noise: clamped sums of a label's place and a noise of two words are private. *)

From Coq Require Import ZArith List Lia Bool.
From LabelDP Require Import Draw Check Counting Lines Windows Tables.
Import ListNotations.
Open Scope Z_scope.

(** * Running extremes and quotients *)

Section Running.
  Variable f : Z -> Z -> Z.
  Variable R : Z -> Z -> Prop.
  Hypothesis R_refl : forall x, R x x.
  Hypothesis R_trans : forall x y z, R x y -> R y z -> R x z.
  Hypothesis f_left : forall x y, R x (f x y).
  Hypothesis f_right : forall x y, R y (f x y).
  Hypothesis f_one : forall x y, f x y = x \/ f x y = y.

  Lemma running_length l : forall s, length (running f s l) = length l.
  Proof. induction l; intros; cbn; auto. Qed.

  Lemma running_bound l : forall s i j,
    0 <= j <= i -> i < Z.of_nat (length l) ->
    R s (at_ (running f s l) i) /\ R (at_ l j) (at_ (running f s l) i) /\
    (at_ (running f s l) i = s \/ In (at_ (running f s l) i) l).
  Proof.
    induction l as [|x l IH]; intros s i j Hj Hi; cbn [length] in Hi; [lia|].
    cbn [running]. destruct (Z.eq_dec i 0) as [->|].
    - assert (j = 0) as -> by lia. unfold at_. cbn. split; [auto|]. split; [auto|].
      destruct (f_one s x) as [->| ->]; auto.
    - replace i with (1 + (i - 1)) by lia. rewrite at_cons by lia.
      destruct (Z.eq_dec j 0) as [->|].
      + destruct (IH (f s x) (i - 1) 0 ltac:(lia) ltac:(lia)) as (A & _ & C).
        split; [eauto|]. split; [unfold at_ at 1; cbn; eauto|].
        destruct C as [->|C]; [destruct (f_one s x) as [->| ->]; cbn; auto|right; right; auto].
      + destruct (IH (f s x) (i - 1) (j - 1) ltac:(lia) ltac:(lia)) as (A & B & C).
        split; [eauto|]. split.
        * replace j with (1 + (j - 1)) by lia. rewrite at_cons by lia. auto.
        * destruct C as [->|C]; [destruct (f_one s x) as [->| ->]; cbn; auto|right; right; auto].
  Qed.

  Lemma from_left_bound l i j :
    0 <= j <= i -> i < Z.of_nat (length l) ->
    R (at_ l j) (at_ (from_left f l) i) /\ In (at_ (from_left f l) i) l.
  Proof.
    intros Hj Hi. unfold from_left.
    destruct (running_bound l (hd 0 l) i j Hj Hi) as (_ & B & C). split; auto.
    destruct C as [->|C]; auto. destruct l; cbn in *; [lia|auto].
  Qed.

  Lemma rev'_eq (l : list Z) : rev' l = rev l.
  Proof. unfold rev'. rewrite <- rev_alt. reflexivity. Qed.

  Lemma from_left_length l : length (from_left f l) = length l.
  Proof. apply running_length. Qed.

  Lemma from_right_length l : length (from_right f l) = length l.
  Proof. unfold from_right. rewrite !rev'_eq, rev_length, from_left_length, rev_length. reflexivity. Qed.

  Lemma at_rev l i : 0 <= i < Z.of_nat (length l) -> at_ (rev l) i = at_ l (Z.of_nat (length l) - 1 - i).
  Proof.
    intros H. unfold at_. rewrite rev_nth by lia. f_equal. lia.
  Qed.

  Lemma from_right_bound l i j :
    0 <= i <= j -> j < Z.of_nat (length l) ->
    R (at_ l j) (at_ (from_right f l) i) /\ In (at_ (from_right f l) i) l.
  Proof.
    intros Hi Hj. unfold from_right. rewrite !rev'_eq.
    assert (L : length (from_left f (rev l)) = length l) by (rewrite from_left_length, rev_length; auto).
    rewrite at_rev by (rewrite L; lia). rewrite L.
    destruct (from_left_bound (rev l) (Z.of_nat (length l) - 1 - i) (Z.of_nat (length l) - 1 - j))
      as [A B]; try (rewrite ?rev_length; lia).
    rewrite at_rev in A by lia. replace (Z.of_nat (length l) - 1 - (Z.of_nat (length l) - 1 - j)) with j in A by lia.
    split; auto. apply in_rev. exact B.
  Qed.
End Running.

Lemma left_max l i j :
  0 <= j <= i -> i < Z.of_nat (length l) ->
  at_ l j <= at_ (from_left Z.max l) i /\ In (at_ (from_left Z.max l) i) l.
Proof. apply (from_left_bound Z.max Z.le); intros; lia. Qed.

Lemma left_min l i j :
  0 <= j <= i -> i < Z.of_nat (length l) ->
  at_ (from_left Z.min l) i <= at_ l j /\ In (at_ (from_left Z.min l) i) l.
Proof. apply (from_left_bound Z.min (fun x y => y <= x)); intros; lia. Qed.

Lemma right_max l i j :
  0 <= i <= j -> j < Z.of_nat (length l) ->
  at_ l j <= at_ (from_right Z.max l) i /\ In (at_ (from_right Z.max l) i) l.
Proof. apply (from_right_bound Z.max Z.le); intros; lia. Qed.

Lemma right_min l i j :
  0 <= i <= j -> j < Z.of_nat (length l) ->
  at_ (from_right Z.min l) i <= at_ l j /\ In (at_ (from_right Z.min l) i) l.
Proof. apply (from_right_bound Z.min (fun x y => y <= x)); intros; lia. Qed.

Lemma fold_left_max l : forall s, s <= fold_left Z.max l s /\ forall x, In x l -> x <= fold_left Z.max l s.
Proof.
  induction l as [|y l IH]; intros s; cbn [fold_left]; [split; [lia|easy]|].
  destruct (IH (Z.max s y)) as [A B]. split; [lia|]. intros x [<-|H]; [lia|auto].
Qed.

Lemma fold_left_min l : forall s, fold_left Z.min l s <= s /\ forall x, In x l -> fold_left Z.min l s <= x.
Proof.
  induction l as [|y l IH]; intros s; cbn [fold_left]; [split; [lia|easy]|].
  destruct (IH (Z.min s y)) as [A B]. split; [lia|]. intros x [<-|H]; [lia|auto].
Qed.

Lemma quotient_bound pairs :
  (forall p, In p pairs -> 0 < snd p) ->
  0 < snd (largest_quotient pairs) /\
  forall p, In p pairs -> fst p * snd (largest_quotient pairs) <= fst (largest_quotient pairs) * snd p.
Proof.
  unfold largest_quotient. induction pairs as [|p l IH]; cbn [fold_right In]; intros H; [split; [cbn; lia|easy]|].
  destruct IH as [A B]; [auto|]. set (m := fold_right _ _ _) in *.
  pose proof (H p (or_introl eq_refl)) as Hp.
  destruct (Z.ltb_spec (fst m * snd p) (fst p * snd m)).
  - split; [auto|]. intros x [<-|Hx]; [lia|].
    specialize (B x Hx). pose proof (H x (or_intror Hx)). 
    apply (Z.mul_le_mono_pos_r _ _ (snd m)); auto.
    apply Z.le_trans with (fst m * snd x * snd p); [nia|nia].
  - split; [auto|]. intros x [<-|Hx]; [lia|auto].
Qed.

Lemma product_bound num den p q g l g' r :
  product_within num den p q = true -> 0 <= num -> 0 <= den ->
  0 < snd p -> 0 < snd q -> 0 <= g -> 0 <= l -> 0 <= g' -> 0 <= r ->
  l * snd p <= fst p * r -> g * snd q <= fst q * g' ->
  den * (g * l) <= num * (g' * r).
Proof.
  unfold product_within. rewrite Z.leb_le. destruct p as [P Q], q as [U V]; cbn [fst snd].
  intros H Hn Hd HQ HV Hg Hl Hg' Hr H1 H2.
  apply (Z.mul_le_mono_pos_r _ _ (Q * V)); [nia|].
  assert (E1 : (l * Q) * (g * V) <= (P * r) * (U * g'))
    by (apply Z.mul_le_mono_nonneg; auto; apply Z.mul_nonneg_nonneg; lia).
  assert (E2 : den * ((l * Q) * (g * V)) <= den * ((P * r) * (U * g')))
    by (apply Z.mul_le_mono_nonneg_l; auto).
  assert (E3 : (den * (P * U)) * (r * g') <= (num * (Q * V)) * (r * g'))
    by (apply Z.mul_le_mono_nonneg_r; auto; apply Z.mul_nonneg_nonneg; lia).
  lia.
Qed.

Lemma at_tl l i : 0 <= i -> at_ (tl l) i = at_ l (i + 1).
Proof.
  intros. unfold at_. replace (Z.to_nat (i + 1)) with (S (Z.to_nat i)) by lia.
  destruct l; cbn; auto. destruct (Z.to_nat i); auto.
Qed.

Lemma steps_in bs i :
  0 <= i -> i + 1 < Z.of_nat (length bs) -> In (at_ bs i, at_ bs (i + 1)) (steps bs).
Proof.
  intros Hi Hl. unfold steps. rewrite <- at_tl by auto.
  assert (E : forall (l k : list Z) n, (n < length l)%nat -> (n < length k)%nat ->
     In (nth n l 0, nth n k 0) (combine l k)).
  { clear. induction l as [|x l IH]; intros [|y k] [|n] H1 H2; cbn in *; try lia; auto.
    right. apply IH; lia. }
  apply E; destruct bs; cbn in *; lia.
Qed.

Lemma steps_positive bs : (forall x, In x bs -> 1 <= x) ->
  forall p, In p (steps bs) -> 0 < fst p /\ 0 < snd p.
Proof.
  intros H [x y] Hp. unfold steps in Hp.
  pose proof (in_combine_l _ _ _ _ Hp) as A. pose proof (in_combine_r _ _ _ _ Hp) as B.
  assert (In y bs) by (destruct bs; cbn in *; auto).
  apply H in A. specialize (H y ltac:(auto)). cbn. lia.
Qed.

Definition ones (l : list Z) : Prop := forall x, In x l -> 1 <= x.

Lemma neighbours_bound num den bs left right b i i' :
  neighbours_within num den bs left right = true -> 0 <= den -> 0 <= num ->
  ones bs -> ones left -> ones right -> length left = length right ->
  0 <= b -> b + 1 < Z.of_nat (length bs) -> 0 <= i' <= i -> i < Z.of_nat (length left) ->
  den * (at_ bs b * at_ left i) <= num * (at_ bs (b + 1) * at_ right i') /\
  den * (at_ bs (b + 1) * at_ right i') <= num * (at_ bs b * at_ left i).
Proof.
  intros H Hd Hn Hbs Hleft Hright HL Hb Hb' Hi Hi'.
  assert (P : product_within num den
      (largest_quotient (combine (from_right Z.max left) (from_left Z.min right)))
      (largest_quotient (steps bs)) = true /\
    product_within num den
      (largest_quotient (combine (from_left Z.max right) (from_right Z.min left)))
      (largest_quotient (map (fun p => (snd p, fst p)) (steps bs))) = true).
  { unfold neighbours_within in H. destruct bs as [|x [|y bs]]; cbn [length] in Hb'; try lia.
    apply andb_true_iff in H. exact H. }
  clear H. destruct P as [P1 P2].
  destruct (right_max left i' i ltac:(lia) ltac:(lia)) as [A1 _].
  destruct (left_max right i i' ltac:(lia) ltac:(lia)) as [A2 _].
  destruct (left_min right i' i' ltac:(lia) ltac:(lia)) as [A3 _].
  destruct (right_min left i i ltac:(lia) ltac:(lia)) as [A4 _].
  assert (Qf : forall p, In p (combine (from_right Z.max left) (from_left Z.min right)) -> 0 < snd p).
  { intros p Hp. apply combine_at_inv in Hp; [|rewrite from_right_length, from_left_length; auto].
    destruct Hp as (o & Ho & ->). rewrite from_right_length in Ho. cbn [snd].
    destruct (left_min right o o ltac:(lia) ltac:(lia)) as [_ K].
    apply Hright in K. lia. }
  assert (Qr : forall p, In p (combine (from_left Z.max right) (from_right Z.min left)) -> 0 < snd p).
  { intros p Hp. apply combine_at_inv in Hp; [|rewrite from_right_length, from_left_length; auto].
    destruct Hp as (o & Ho & ->). rewrite from_left_length in Ho. cbn [snd].
    destruct (right_min left o o ltac:(lia) ltac:(lia)) as [_ K].
    apply Hleft in K. lia. }
  assert (Qs : forall p, In p (steps bs) -> 0 < snd p) by (intros p Hp; apply (steps_positive bs Hbs); auto).
  assert (Qt : forall p, In p (map (fun p => (snd p, fst p)) (steps bs)) -> 0 < snd p).
  { intros p Hp. apply in_map_iff in Hp. destruct Hp as (x & <- & Hx). cbn [snd].
    apply (steps_positive bs Hbs). auto. }
  destruct (quotient_bound _ Qf) as [F1 F2]. destruct (quotient_bound _ Qr) as [R1 R2].
  destruct (quotient_bound _ Qs) as [S1 S2]. destruct (quotient_bound _ Qt) as [T1 T2].
  pose proof (steps_in bs b Hb Hb') as Hstep.
  assert (If : In (at_ (from_right Z.max left) i', at_ (from_left Z.min right) i')
                  (combine (from_right Z.max left) (from_left Z.min right)))
    by (apply combine_at; rewrite ?from_right_length, ?from_left_length; lia).
  assert (Ir : In (at_ (from_left Z.max right) i, at_ (from_right Z.min left) i)
                  (combine (from_left Z.max right) (from_right Z.min left)))
    by (apply combine_at; rewrite ?from_right_length, ?from_left_length; lia).
  assert (B1 : 1 <= at_ bs b) by (apply Hbs, at_in; lia).
  assert (B2 : 1 <= at_ bs (b + 1)) by (apply Hbs, at_in; lia).
  assert (L1 : 1 <= at_ left i) by (apply Hleft, at_in; lia).
  assert (L2 : 1 <= at_ right i') by (apply Hright, at_in; lia).
  split.
  - pose proof (F2 _ If) as K1. cbn [fst snd] in K1.
    pose proof (S2 _ Hstep) as K2. cbn [fst snd] in K2.
    assert (P0 : 0 <= fst (largest_quotient (combine (from_right Z.max left) (from_left Z.min right)))).
    { destruct (Z.leb_spec 0 (fst (largest_quotient (combine (from_right Z.max left) (from_left Z.min right))))); [auto|].
      specialize (Qf _ If). cbn [snd] in Qf. nia. }
    apply (product_bound _ _ _ _ _ _ _ _ P1); auto; try lia.
    apply Z.le_trans with (at_ (from_right Z.max left) i' * snd (largest_quotient (combine (from_right Z.max left) (from_left Z.min right)))).
    + apply Z.mul_le_mono_nonneg_r; lia.
    + eapply Z.le_trans; [exact K1|]. apply Z.mul_le_mono_nonneg_l; lia.
  - pose proof (R2 _ Ir) as K1. cbn [fst snd] in K1.
    pose proof (T2 _ (in_map (fun p => (snd p, fst p)) _ _ Hstep)) as K2. cbn [fst snd] in K2.
    assert (P0 : 0 <= fst (largest_quotient (combine (from_left Z.max right) (from_right Z.min left)))).
    { destruct (Z.leb_spec 0 (fst (largest_quotient (combine (from_left Z.max right) (from_right Z.min left))))); [auto|].
      specialize (Qr _ Ir). cbn [snd] in Qr. nia. }
    apply (product_bound _ _ _ _ _ _ _ _ P2); auto; try lia.
    apply Z.le_trans with (at_ (from_left Z.max right) i * snd (largest_quotient (combine (from_left Z.max right) (from_right Z.min left)))).
    + apply Z.mul_le_mono_nonneg_r; lia.
    + eapply Z.le_trans; [exact K1|]. apply Z.mul_le_mono_nonneg_l; lia.
Qed.
