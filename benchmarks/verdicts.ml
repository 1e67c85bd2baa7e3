(* One verdict a line, 1 or 0, of the extracted checks: a form's letter, then hexadecimal integers. *)

open Check

let rec positive n i = (* the i + 1 lowest bits of the hexadecimal digits n *)
  let digit = int_of_string ("0x" ^ String.make 1 n.[String.length n - 1 - i / 4]) in
  digit lsr (i mod 4) land 1 = 1
and z_of text =
  let negative = text.[0] = '-' in
  let digits = if negative then String.sub text 1 (String.length text - 1) else text in
  let bits = 4 * String.length digits in
  let rec highest i = if i < 0 then i else if positive digits i then i else highest (i - 1) in
  let top = highest (bits - 1) in
  if top < 0 then Z0
  else begin
    let p = ref XH in
    for i = top - 1 downto 0 do p := if positive digits i then XI !p else XO !p done;
    if negative then Zneg !p else Zpos !p
  end

let tokens = ref []
let next () = match !tokens with t :: rest -> tokens := rest; t | [] -> failwith "too few integers"
let integer () = z_of (next ())
let size () = int_of_string ("0x" ^ next ())
let listed read = let n = size () in List.init n (fun _ -> read ())
let integers () = listed integer

let window () =
  let bits = integer () in
  let base = integers () in
  let extra = listed (fun () -> let n = integer () in (n, integer ())) in
  { bits; base; extra; offsets = integers () }

let verdict line =
  tokens := String.split_on_char ' ' line;
  let form = next () in
  let num = integer () in
  let den = integer () in
  match form with
  | "w" -> window_check num den (window ())
  | "g" -> let k = integer () in grouped_check num den k (listed window)
  | "t" -> let b = integer () in let m = integer () in table_check num den b m (listed integers)
  | "e" ->
    let b = integer () in let c = integer () in let m = integer () in
    table_file_check num den b c m (listed integers)
  | "a" ->
    let a_bits = integer () in let labels = integer () in let spacing = integer () in
    let blocks = integers () in let below = integers () in let above = integers () in
    let low = integer () in let high = integer () in
    additive_check num den { a_bits; labels; spacing; blocks; below; above; low; high }
  | _ -> failwith "an unknown form"

let () =
  try
    while true do print_endline (if verdict (input_line stdin) then "1" else "0") done
  with End_of_file -> ()
