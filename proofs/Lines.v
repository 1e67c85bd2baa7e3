(** Lemmas on lines of segments: how many integers of a stretch belong to an output. *)

From Coq Require Import ZArith List Lia Bool FMapPositive.
From LabelDP Require Import Draw Check Counting.
Import ListNotations.
Open Scope Z_scope.

(** How many of 0 ... p - 1 belong to output i. *)
Fixpoint before (l : line) (i p : Z) : Z :=
  match l with
  | [] => 0
  | (n, j) :: rest => (if j =? i then Z.max 0 (Z.min n p) else 0) + before rest i (p - n)
  end.

Definition lengths_ok (l : line) : Prop := forall n j, In (n, j) l -> 0 <= n.

Lemma lengths_ok_cons n j l : lengths_ok ((n, j) :: l) -> 0 <= n /\ lengths_ok l.
Proof.
  intros H. split; [apply (H n j); left; reflexivity|]. intros n' j' Hi. apply (H n' j'). right. auto.
Qed.

Lemma before_nonpos l i p : lengths_ok l -> p <= 0 -> before l i p = 0.
Proof.
  revert p. induction l as [|[n j] l IH]; cbn [before]; intros p Hl Hp; [reflexivity|].
  apply lengths_ok_cons in Hl. rewrite IH by (tauto || lia).
  destruct (j =? i); lia.
Qed.

Lemma before_mono l i p q : lengths_ok l -> p <= q -> before l i p <= before l i q.
Proof.
  revert p q. induction l as [|[n j] l IH]; cbn [before]; intros p q Hl Hp; [lia|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  specialize (IH (p - n) (q - n) Hl ltac:(lia)). destruct (j =? i); lia.
Qed.

Lemma before_step l i p :
  lengths_ok l -> 0 <= p < length_of l ->
  before l i (p + 1) - before l i p = b2z (owner l p =? i).
Proof.
  unfold length_of.
  revert p. induction l as [|[n j] l IH]; cbn [before owner map fst total fold_right];
    intros p Hl Hp; [lia|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  destruct (Z.ltb_spec p n).
  - rewrite !(before_nonpos l) by (auto; lia). destruct (j =? i); cbn [b2z]; lia.
  - replace (p + 1 - n) with (p - n + 1) by lia.
    specialize (IH (p - n) Hl). unfold total in *. destruct (j =? i); lia.
Qed.

Lemma before_lipschitz l i p q : lengths_ok l -> p <= q -> before l i q - before l i p <= q - p.
Proof.
  intros Hl. revert p q. induction l as [|[n j] l IH]; cbn [before]; intros p q Hp; [lia|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  assert (Z0 : forall x, x <= 0 -> before l i x = 0) by (intros; apply before_nonpos; auto).
  destruct (Z.leb_spec q n).
  - rewrite !Z0 by lia. destruct (j =? i); lia.
  - destruct (Z.leb_spec p n).
    + pose proof (IH Hl 0 (q - n) ltac:(lia)) as H1. rewrite (Z0 0) in H1 by lia.
      rewrite (Z0 (p - n)) by lia. destruct (j =? i); lia.
    + pose proof (IH Hl (p - n) (q - n) ltac:(lia)). destruct (j =? i); lia.
Qed.

Lemma total_app l k : total (l ++ k) = total l + total k.
Proof. rewrite !total_sum. apply sum_app. Qed.

Lemma length_of_app l k : length_of (l ++ k) = length_of l + length_of k.
Proof. unfold length_of. rewrite map_app. apply total_app. Qed.

Lemma length_of_nonneg l : lengths_ok l -> 0 <= length_of l.
Proof.
  unfold length_of. induction l as [|[n j] l IH]; cbn; intros H; [lia|].
  apply lengths_ok_cons in H. destruct H as [H1 H2]. specialize (IH H2). unfold total in *. lia.
Qed.

Lemma owner_app l k t :
  lengths_ok l -> 0 <= t ->
  owner (l ++ k) t = if t <? length_of l then owner l t else owner k (t - length_of l).
Proof.
  unfold length_of. revert t. induction l as [|[n j] l IH]; cbn [app owner map fst]; intros t Hl Ht.
  - cbn. destruct (Z.ltb_spec t 0); [lia|]. f_equal. lia.
  - apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
    pose proof (length_of_nonneg l Hl) as Hp. unfold length_of in Hp.
    change (total (n :: map fst l)) with (n + total (map fst l)).
    destruct (Z.ltb_spec t n).
    + destruct (Z.ltb_spec t (n + total (map fst l))); [reflexivity|lia].
    + rewrite IH by (auto; lia).
      destruct (Z.ltb_spec (t - n) (total (map fst l)));
        destruct (Z.ltb_spec t (n + total (map fst l))); try lia; try reflexivity.
      f_equal. lia.
Qed.

Lemma owner_in l t : lengths_ok l -> 0 <= t < length_of l -> In (owner l t) (map snd l).
Proof.
  unfold length_of. revert t. induction l as [|[n j] l IH]; cbn [owner map fst snd]; intros t Hl Ht.
  - cbn in Ht. lia.
  - apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
    change (total (n :: map fst l)) with (n + total (map fst l)) in Ht.
    destruct (Z.ltb_spec t n); [left; reflexivity|]. right. apply IH; auto; lia.
Qed.

(** * The segments of an output *)

Fixpoint places_of (l : line) (i start : Z) : list (Z * Z) :=
  match l with
  | [] => []
  | (n, j) :: rest =>
      (if j =? i then [(start, start + n)] else []) ++ places_of rest i (start + n)
  end.

Definition clipped (a b p : Z) : Z := Z.max 0 (Z.min b p - a).
Definition before_places (segments : list (Z * Z)) (p : Z) : Z :=
  sum (fun s => clipped (fst s) (snd s) p) segments.

Lemma before_places_of l i start p :
  lengths_ok l -> before_places (places_of l i start) p = before l i (p - start).
Proof.
  unfold before_places.
  revert start p. induction l as [|[n j] l IH]; cbn [places_of before]; intros start p Hl; [reflexivity|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  rewrite sum_app, IH by auto. replace (p - (start + n)) with (p - start - n) by lia.
  destruct (j =? i); cbn [sum fst snd]; unfold clipped; lia.
Qed.

Lemma places_of_bounds l i start a b :
  lengths_ok l -> In (a, b) (places_of l i start) -> start <= a <= b.
Proof.
  revert start. induction l as [|[n j] l IH]; cbn [places_of]; intros start Hl; [easy|].
  apply lengths_ok_cons in Hl. destruct Hl as [Hn Hl].
  intros Hi. apply in_app_or in Hi. destruct Hi as [Hi|Hi].
  - destruct (j =? i); [|easy]. destruct Hi as [Hi|[]]. inversion Hi; subst. lia.
  - apply IH in Hi; auto. lia.
Qed.

Lemma covered_before segments s e :
  (forall a b, In (a, b) segments -> a <= b) -> s <= e ->
  covered segments s e = before_places segments e - before_places segments s.
Proof.
  unfold covered, before_places. intros H Hs.
  induction segments as [|[a b] l IH]; cbn [map sum fst snd]; [reflexivity|].
  unfold total in *. cbn [fold_right]. rewrite IH by (intros; apply (H a0 b0); right; auto).
  assert (a <= b) by (apply H; left; auto). unfold clipped. lia.
Qed.

Lemma before_places_mono segments p q : p <= q -> before_places segments p <= before_places segments q.
Proof.
  intros. unfold before_places. apply sum_le. intros [a b] _. unfold clipped. cbn. lia.
Qed.

Lemma before_places_one segments p q a b :
  p <= q -> In (a, b) segments ->
  clipped a b q - clipped a b p <= before_places segments q - before_places segments p.
Proof.
  intros Hp. unfold before_places. induction segments as [|[a' b'] l IH]; cbn [In sum]; [easy|].
  intros [Hi|Hi].
  - inversion Hi; subst. cbn [fst snd].
    pose proof (before_places_mono l p q Hp) as M. unfold before_places in M. lia.
  - specialize (IH Hi). cbn [fst snd]. unfold clipped in *. lia.
Qed.

(** The first start behind s, if there is one. *)
Lemma first_start (segments : list (Z * Z)) s :
  (forall a b, In (a, b) segments -> a <= s) \/
  (exists a b, In (a, b) segments /\ s < a /\ forall a' b', In (a', b') segments -> s < a' -> a <= a').
Proof.
  induction segments as [|[x y] l IH]; [left; easy|].
  destruct IH as [H|(a & b & Hi & Ha & Hm)].
  - destruct (Z.leb_spec x s).
    + left. intros a b [E|E]; [inversion E; subst; auto|eauto].
    + right. exists x, y. split; [left; auto|]. split; [auto|].
      intros a' b' [E|E] Hs; [inversion E; lia|]. specialize (H _ _ E). lia.
  - right. destruct (Z.leb_spec x s); [|destruct (Z.leb_spec a x)].
    + exists a, b. split; [right; auto|]. split; [auto|].
      intros a' b' [E|E] Hs; [inversion E; subst; lia|eauto].
    + exists a, b. split; [right; auto|]. split; [auto|].
      intros a' b' [E|E] Hs; [inversion E; subst; lia|eauto].
    + exists x, y. split; [left; auto|]. split; [lia|].
      intros a' b' [E|E] Hs; [inversion E; subst; lia|]. specialize (Hm _ _ E Hs). lia.
Qed.

Lemma inside_or_not (segments : list (Z * Z)) s :
  (exists a b, In (a, b) segments /\ a <= s < b) \/
  (forall a b, In (a, b) segments -> ~ a <= s < b).
Proof.
  induction segments as [|[x y] l [(a & b & Hi & Hs)|H]].
  - right. easy.
  - left. exists a, b. split; [right|]; auto.
  - destruct (Z_le_dec x s), (Z_lt_dec s y).
    1: left; exists x, y; split; [left; auto|lia].
    all: right; intros a b [E|E]; [inversion E; subst; lia|eauto].
Qed.

Lemma max_at {A} (f : A -> Z) l x : In x l -> f x <= fold_right Z.max 0 (map f l).
Proof.
  induction l as [|y l IH]; cbn [In map fold_right]; [easy|].
  intros [->|H]; [lia|]. specialize (IH H). lia.
Qed.

Lemma max_nonneg {A} (f : A -> Z) l : 0 <= fold_right Z.max 0 (map f l).
Proof. induction l; cbn [map fold_right]; lia. Qed.

Lemma max_reached {A} (f : A -> Z) l :
  0 < fold_right Z.max 0 (map f l) -> exists x, In x l /\ fold_right Z.max 0 (map f l) = f x.
Proof.
  induction l as [|y l IH]; cbn [In map fold_right]; intros H; [lia|].
  destruct (Z.leb_spec (fold_right Z.max 0 (map f l)) (f y)).
  - exists y. split; [auto|lia].
  - destruct IH as (x & Hx & E); [lia|]. exists x. split; [auto|lia].
Qed.

Lemma most_covered_at segments X last a b :
  In (a, b) segments ->
  covered segments (Z.min a last) (Z.min a last + X) <= most_covered segments X last.
Proof.
  intros H.
  apply (max_at (fun p => let s := Z.min (fst p) last in covered segments s (s + X)) _ (a, b) H).
Qed.

Lemma most_covered_nonneg segments X last : 0 <= most_covered segments X last.
Proof. apply max_nonneg. Qed.

(** No window covers more. *)
Lemma covered_most segments X last s :
  0 <= X ->
  (forall a b, In (a, b) segments -> a <= b) ->
  (forall p q, p <= q -> before_places segments q - before_places segments p <= q - p) ->
  s <= last ->
  covered segments s (s + X) <= most_covered segments X last.
Proof.
  intros HX Hab HL Hs.
  rewrite covered_before by (auto; lia).
  destruct (inside_or_not segments s) as [(a & b & Hi & Hin)|Hout].
  - pose proof (most_covered_at segments X last a b Hi) as M.
    rewrite Z.min_l in M by lia. rewrite covered_before in M by (auto; lia).
    pose proof (before_places_one segments a s a b ltac:(lia) Hi) as H1. unfold clipped in H1.
    pose proof (HL (a + X) (s + X) ltac:(lia)). lia.
  - destruct (first_start segments s) as [Hno|(a & b & Hi & Ha & Hfirst)].
    + assert (E : before_places segments (s + X) = before_places segments s).
      { unfold before_places. apply sum_ext. intros [a b] Hi. cbn [fst snd].
        specialize (Hno a b Hi). specialize (Hout a b Hi). specialize (Hab a b Hi).
        unfold clipped. lia. }
      rewrite E. pose proof (most_covered_nonneg segments X last). lia.
    + pose proof (most_covered_at segments X last a b Hi) as M.
      set (c := Z.min a last) in *.
      rewrite covered_before in M by (auto; lia).
      assert (E : before_places segments c = before_places segments s).
      { unfold before_places. apply sum_ext. intros [x y] Hx. cbn [fst snd].
        specialize (Hout x y Hx). specialize (Hab x y Hx).
        destruct (Z_lt_dec s x) as [Hsx|Hsx].
        - specialize (Hfirst x y Hx Hsx). unfold clipped, c. lia.
        - unfold clipped, c. lia. }
      pose proof (before_places_mono segments (s + X) (c + X) ltac:(unfold c; lia)). lia.
Qed.

(** Nor is it more than some window covers. *)
Lemma most_covered_reached segments X last :
  0 <= last -> (forall a b, In (a, b) segments -> 0 <= a) -> 0 < most_covered segments X last ->
  exists s, 0 <= s <= last /\ most_covered segments X last = covered segments s (s + X).
Proof.
  intros Hl Ha H.
  destruct (max_reached (fun p => let s := Z.min (fst p) last in covered segments s (s + X)) segments H)
    as ([a b] & Hi & E).
  exists (Z.min a last). pose proof (Ha a b Hi). split; [lia|exact E].
Qed.

(** * The map of places *)

Lemma key_inj i j : 0 <= i -> 0 <= j -> key i = key j -> i = j.
Proof. unfold key. intros. assert (i + 1 = j + 1) by (apply Z2Pos.inj; lia). lia. Qed.

Lemma find_put {A} (none : A) i j x m :
  0 <= i -> 0 <= j -> find none (put i x m) j = if i =? j then x else find none m j.
Proof.
  intros Hi Hj. unfold find, put. destruct (Z.eqb_spec i j) as [->|Hne].
  - rewrite PositiveMap.gss. reflexivity.
  - rewrite PositiveMap.gso; [reflexivity|]. intros E. apply Hne. symmetry. apply key_inj; auto.
Qed.

Lemma find_places l : forall start m i,
  0 <= i -> (forall n j, In (n, j) l -> 0 <= j) ->
  find [] (places l start m) i = rev (places_of l i start) ++ find [] m i.
Proof.
  induction l as [|[n j] l IH]; intros start m i Hi Hj; cbn [places places_of]; [reflexivity|].
  rewrite IH by (auto; intros; apply (Hj n0 j0); right; auto).
  assert (0 <= j) by (apply (Hj n j); left; auto).
  rewrite find_put by auto.
  destruct (Z.eqb_spec j i) as [->|_]; cbn [app rev]; [|reflexivity].
  rewrite <- app_assoc. reflexivity.
Qed.

Lemma sum_rev {A} (f : A -> Z) l : sum f (rev l) = sum f l.
Proof. induction l; simpl; auto. rewrite sum_app. simpl. lia. Qed.

Lemma find_empty {A} (none : A) i : find none (PositiveMap.empty A) i = none.
Proof. unfold find. rewrite PositiveMap.gempty. reflexivity. Qed.
