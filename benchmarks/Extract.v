(** The checks of proofs/Check.v as an OCaml program: integers as Coq has them, bit by bit. *)

From Coq Require Import Extraction ExtrOcamlBasic.
From LabelDP Require Import Draw Check.

Set Extraction Output Directory ".".
Extraction "check.ml" window_check grouped_check table_check table_file_check additive_check.
