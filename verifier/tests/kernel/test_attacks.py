"""Files made to leak: each must be refused, for the reason that makes it leak.

All but the tricks of the protobuf load and run: onnxruntime does not mind.
"""

import struct
import subprocess
import sys
from functools import partial

import onnx
import pytest
from labeldp_verify import kernel
from labeldp_verify.graph import write_model
from onnx import TensorProto, helper

from verifier.tests.kernel.enumerated import opened
from verifier.tests.kernel.small_files import INTEGERS, small_files, window

FILES = dict(small_files())
WINDOW, REAL, TABLE = "window-integer-1.4-two", "window-real-1.4-two", "table-integer"
UNBIASED, JOINT, GROUPED = "window-real-unbiased-1.4-two", "window-joint-1.4-three", "grouped-text"
PORTABLE = "window-integer-portable"
ADDITIVE, CLAMPED = "additive-integer-1.4", "additive-integer-1.0"


def _made_node(operator, inputs, output, domain="", **attributes):
    """A node with each of the fields that the kernel expects."""
    made = helper.make_node(operator, inputs, [output], name=output, **attributes)
    made.domain = domain
    return made


class Edited:
    """An honest file to which nodes and constants are added, and whose wires are moved."""

    def __init__(self, name):
        self.model = onnx.load_model_from_string(FILES[name])
        self.graph = self.model.graph

    def node(self, output):
        return next(node for node in self.graph.node if output in node.output)

    def put(self, before, operator, inputs, output, **attributes):
        """A new node before the one that computes ``before``."""
        at = list(self.graph.node).index(self.node(before))
        self.graph.node.insert(at, _made_node(operator, inputs, output, **attributes))
        return output

    def wire(self, output, place, name):
        self.node(output).input[place] = name

    def constant(self, name, kind, values, dims=()):
        packed = {7: "q", 11: "d", 13: "Q"}[kind]
        tensor = TensorProto(name=name, data_type=kind, dims=dims)
        tensor.raw_data = struct.pack(f"<{len(values)}{packed}", *values)
        old = [i for i, one in enumerate(self.graph.initializer) if one.name == name]
        if old:
            tensor.dims[:] = self.graph.initializer[old[0]].dims
            self.graph.initializer[old[0]].CopyFrom(tensor)
        else:
            self.graph.initializer.append(tensor)
        return name

    def numbers(self, name):
        tensor = next(one for one in self.graph.initializer if one.name == name)
        return onnx.numpy_helper.to_array(tensor).tolist()

    def bytes(self):
        return self.model.SerializeToString(deterministic=True)


def greatest_label_of_all():
    """Every row gets the row of the greatest label."""
    file = Edited(WINDOW)
    file.wire("row_number", 0, file.put("row_number", "ReduceMax", ["label_inside"], "all"))
    return file


def label_of_the_row_before():
    file = Edited(WINDOW)
    file.wire("label_number", 0, file.put("label_number", "CumSum", ["label", "zero"], "sums"))
    file.constant("zero", 7, [0])
    return file


def one_column_for_all_rows():
    """A second column of one row is broadcast over all of them."""
    file = Edited(JOINT)
    file.wire("label_2_sum", 1, file.node("label_2_place").input[0])
    return file


def rounding_by_the_word_of_the_draw():
    file = Edited(UNBIASED)
    file.wire("rounding_bits", 0, "word")
    return file


def both_words_are_one():
    file = Edited(ADDITIVE)
    reused = next(n for n in file.graph.node if n.output[0] == "second_word").output[0]
    for node in file.graph.node:
        for i, name in enumerate(node.input):
            if name == reused:
                node.input[i] = "word"
    return file


def one_word_for_all_rows():
    """Without the Reshape a single word is broadcast over all labels."""
    file = Edited(WINDOW)
    file.wire("word_high", 0, "entropy")
    return file


def words_of_other_rows():
    """The words, transposed: of two rows with two words each, rows share words."""
    file = Edited(UNBIASED)
    turned = file.put("word_table", "Transpose", ["entropy"], "turned", perm=[1, 0])
    file.wire("word_table", 0, turned)
    return file


def word_that_depends_on_the_label():
    file = Edited(WINDOW)
    unsigned = file.put("word_high", "Cast", ["label"], "as_word", to=13)
    file.wire("word_high", 0, file.put("word_high", "Min", ["word", unsigned], "least"))
    return file


def sum_that_wraps():
    """u + offset is beyond int64 for one label."""
    file = Edited(WINDOW)
    file.constant("offsets", 7, [*file.numbers("offsets")[:-1], 2**63 - 1])
    return file


def entry_that_wraps():
    file = Edited(WINDOW)
    file.constant("grid", 7, [2**63 - 1, *file.numbers("grid")[1:]])
    return file


def move_that_wraps():
    file = Edited(GROUPED)
    file.constant("moves", 7, [*file.numbers("moves")[:-1], 2**63 - 1])
    return file


def row_below_zero():
    """ONNX takes −1 for the last entry."""
    file = Edited(WINDOW)
    file.wire("row_number", 1, file.constant("one_more", 11, [0.0]))
    return file


def row_beyond_the_last():
    """It fails for the greatest label alone."""
    file = Edited(WINDOW)
    file.constant("offsets_shorter", 7, file.numbers("offsets")[:-1], [3])
    file.wire("offset", 0, "offsets_shorter")
    return file


def nan_that_reaches_the_cast():
    """Clip lets NaN through, and a cast of NaN to an integer is undefined."""
    file = Edited(REAL)
    clipped = file.put("distance", "Clip", ["label", "label_min", "label_max"], "clipped")
    file.wire("distance", 0, clipped)
    return file


def number_that_no_integer_holds():
    file = Edited(REAL)
    file.wire("distance", 0, "label")
    return file


def constant_that_is_not_applied():
    """onnxruntime leaves out · (1 − 10⁻¹²), which would have kept the row in range."""
    file = Edited(WINDOW)
    file.constant("nearly", 11, [1 - 1e-12])
    file.constant("label_max", 11, [3.0])
    file.put("row", "Mul", ["row_number", "nearly"], "shrunk")
    file.wire("row", 0, file.put("row", "Floor", ["shrunk"], "kept"))
    return file


def row_by_way_of_a_bool():
    """0.5 is true, and 1 as an integer: one beyond the only offset."""
    file = Edited(WINDOW)
    file.constant("half", 11, [0.5])
    file.constant("first_offset", 7, file.numbers("offsets")[:1], [1])
    halved = file.put("row", "Min", ["row_number", "half"], "halved")
    file.wire("row", 0, file.put("row", "Cast", [halved], "is_any", to=9))
    file.wire("offset", 0, "first_offset")
    return file


def row_by_way_of_float32():
    """A number between 0 and 1 stays one there, and grows beyond the last offset."""
    file = Edited(WINDOW)
    file.constant("part", 11, [0.3])
    file.constant("many", 11, [20.0])
    shrunk = file.put("row", "Mul", ["row_number", "part"], "shrunk")
    narrow = file.put("row", "Cast", [shrunk], "narrow", to=1)
    wide = file.put("row", "Cast", [narrow], "wide", to=11)
    file.wire("row", 0, file.put("row", "Mul", [wide, "many"], "grown"))
    return file


def negative_zero():
    """The extra line answers −0.0, the base line 0.0: labels differ in the sign."""
    base, extra = (4, 3, 5), (10, 8, 12)
    made = window(INTEGERS, base, extra)
    made.__dict__["values"] = (0.0, 1.5, 3.0)
    file = Edited(WINDOW)
    file.model = onnx.load_model_from_string(write_model(INTEGERS, made, {}))
    file.graph = file.model.graph
    values = file.numbers("segment_values")
    file.constant("segment_values", 11, [*values[:3], -0.0, *values[4:]])
    return file


def category_beyond_the_last():
    file = Edited("window-text-1.4-two")
    encoder = file.node("row")
    next(a for a in encoder.attribute if a.name == "values_int64s").ints[1] = 4
    return file


def default_beyond_the_last():
    file = Edited("window-text-1.4-two")
    next(a for a in file.node("row").attribute if a.name == "default_int64").i = -1
    return file


def noise_on_a_fraction():
    """The label is not on the noise's lattice: its fraction is in the answer."""
    file = Edited(ADDITIVE)
    file.constant("half_of_it", 11, [0.5])
    halved = file.put("label_point", "Mul", ["row_number", "half_of_it"], "halved")
    file.wire("label_point", 0, halved)
    return file


def answer_with_the_label():
    file = Edited(WINDOW)
    file.graph.output.append(helper.make_tensor_value_info("row", 6, ["N"]))
    return file


def answer_with_the_word():
    """Whoever sees the word and the answer knows the label."""
    file = Edited(WINDOW)
    file.graph.output.append(helper.make_tensor_value_info("u", 7, ["N"]))
    return file


def node_that_fails_for_some_labels():
    """Nothing uses it: still it fails for labels that are no index."""
    file = Edited(WINDOW)
    file.graph.node.append(_made_node("GatherElements", ["offsets", "label"], "unused", axis=0))
    return file


def constant_that_the_caller_replaces():
    """An input of the same name would be taken for the constant."""
    file = Edited(WINDOW)
    file.graph.input.append(helper.make_tensor_value_info("offsets", 7, [4]))
    return file


def vector_in_place_of_a_number():
    """[1] is broadcast as a number is, unless there is one row."""
    file = Edited(WINDOW)
    next(t for t in file.graph.initializer if t.name == "base_total").dims.append(1)
    return file


def group_by_the_label():
    """The table is chosen by the label: each of them is private, the choice is not."""
    file = Edited(GROUPED)
    places = {"keys_int64s": [0], "values_int64s": [1], "default_int64": 0}
    made = _made_node("LabelEncoder", ["label"], "own_table", domain="ai.onnx.ml", **places)
    file.graph.node.insert(0, made)
    file.wire("group_index", 0, "own_table")
    return file


def moves_missing_for_the_last_group():
    """Its greatest label alone has none, and fails."""
    file = Edited(GROUPED)
    moves = next(one for one in file.graph.initializer if one.name == "moves")
    moves.raw_data = moves.raw_data[:-16]
    moves.dims[0] -= 2
    return file


def range_by_the_name_of_a_column():
    """Put into a pattern, the names of its ends are products of other ends: the labels' true range
    is 0 … 9, and the constants of these names say 0 … 0."""
    file = Edited(JOINT)
    name, ends = "label_1_label_max * label_1", ("label_1_label_min", "label_1_label_max")
    column = next(one for one in file.graph.input if one.name == "label_2")
    column.name, column.type.tensor_type.elem_type = name, TensorProto.INT64
    file.constant("label_1_label_max", 11, [3.0])
    file.constant("label_1_stride", 7, [1])
    for end in ("min", "max"):
        shown = file.constant(f"{name}_label_{end}", 11, [0.0])
        file.graph.output.append(helper.make_tensor_value_info(shown, 11, []))
    first = "label_2_row"
    file.put(first, "Cast", [name], "whole", to=TensorProto.DOUBLE)
    low, high = (file.put(first, "Mul", [ends[1], end], f"true_{end}") for end in ends)
    inside = file.put(first, "Clip", ["whole", low, high], "inside")
    counted = file.put(first, "Sub", [inside, low], "counted")
    file.node(first).CopyFrom(_made_node("Cast", [counted], first, to=TensorProto.INT64))
    return file


def groups_for_one_label():
    """One label and many groups: its word is used once for each of them."""
    file = Edited(GROUPED)
    group = file.node("group_index")
    for node in file.graph.node:
        for i, name in enumerate(node.input):
            if name == "group_index":
                node.input[i] = group.input[0]
    file.graph.node.remove(group)
    return file


def label_rounded_by_the_word_of_another_row():
    """The columns of a joint label may have another shape than the first."""
    real = Edited(UNBIASED)
    real.graph.input.insert(0, helper.make_tensor_value_info("label_1", 7, ["N"]))
    shape = next(node for node in real.graph.node if node.op_type == "Shape")
    shape.input[0] = "label_1"
    return real


def limb_that_is_used_twice():
    """Only 2^31 of the 2^62 words occur."""
    file = Edited(PORTABLE)
    file.wire("word_limb_2_bits", 0, "word_limb_1")
    return file


def limb_of_the_draw_that_rounds():
    file = Edited("window-real-unbiased-portable")
    file.wire("rounding_word_limb_1_bits", 0, "word_limb_1")
    return file


# One constant that is another one.
CONSTANTS = {
    # row · columns is beyond int64, and wraps around to another label's table.
    "product_that_wraps": (TABLE, "columns", 7, [2**62 + 4]),
    "noise_that_wraps": (CLAMPED, "period", 7, [2**62]),
    "row_beyond_the_last_by_a_constant": (WINDOW, "label_max", 11, [3.0]),
    # Labels are clipped to NaN, and so not at all.
    "end_that_is_no_number": (WINDOW, "label_max", 11, [float("nan")]),
    "labels_further_apart_than_the_noise": (ADDITIVE, "spacing", 11, [2.0]),
    "clamped_to_nothing": (ADDITIVE, "high", 11, [1000000000000000.0]),
    # A shift by 64 is undefined: on most processors it does nothing.
    "shift_by_all_bits": (WINDOW, "word_shift", 13, [64]),
    # 2^60 buckets, which must not be made before they are counted.
    "huge_line_with_a_small_grid": (WINDOW, "offsets", 7, [0, 0, 0, 2**60]),
    # What was clamped to −0.0 differs from what is 0.0 without being clamped.
    "clamped_to_negative_zero": (ADDITIVE, "low", 11, [-0.0]),
    # 2^62 of them, which must not be listed.
    "more_blocks_than_memory": (CLAMPED, "zero_block", 7, [2**62]),
    # The 32nd bit is 0 where a host draws numbers below 2^31.
    "limb_with_a_bit_that_hosts_may_not_draw": (PORTABLE, "limb_shift", 13, [32]),
    "limbs_that_overlap": (PORTABLE, "limb_2_place", 13, [30]),
    # The lowest bit of a word of 63 bits is always 0.
    "words_that_are_too_long_for_two_limbs": (PORTABLE, "word_shift", 13, [1]),
}


def other_constant(file, *constant):
    edited = Edited(file)
    edited.constant(*constant)
    return edited


NODES = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", "") == __name__ and name[0].islower()
}
del NODES["other_constant"]
ATTACKS = NODES | {name: partial(other_constant, *how) for name, how in CONSTANTS.items()}


@pytest.mark.parametrize("name", ATTACKS)
def test_it_is_refused(name):
    data = ATTACKS[name]().bytes()
    assert opened(data) is not None
    with pytest.raises(kernel.Refused) as refusal:
        kernel.integers_of(data).ratio()
    assert "Error" not in str(refusal.value)  # for a reason that has words
    assert "must each occur once" not in str(refusal.value)  # and not for how it was written


def varint(number):
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def held(number, data):
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


HONEST = FILES[WINDOW]
SMALL = onnx.load_model_from_string(HONEST).graph
TRICKS = {
    "a second graph, which parsers merge": held(7, held(5, b"")),
    "a second version": b"\x08\x08",
    "an unknown field": held(99, b"x"),
    "a field of training": held(20, b""),
    "a function": held(25, b""),
    "a longer form of a tag": b"\xf2\x00" + varint(0),
    "a number that is cut off": b"\x80",
    "a field that is cut off": b"\x72\x7f",
    "a group": b"\x0b\x0c",
    "a fixed number": b"\x09" + bytes(8),
    "an end of zeros": b"\0",
}


@pytest.mark.parametrize("more", TRICKS.values(), ids=TRICKS)
def test_a_trick_of_the_protobuf_is_refused(more):
    kernel.integers_of(HONEST)
    with pytest.raises(kernel.Refused):
        kernel.integers_of(HONEST + more)


def test_numbers_are_read_in_one_form_only():
    """Dimensions may stand packed or one by one, numbers in 64 bits or with more zeros."""
    tensor = next(t for t in SMALL.initializer if t.name == "offsets").SerializeToString()
    assert HONEST.count(tensor) == 1
    at = tensor.index(b"\x08\x04")
    for dims in (b"\x0a\x01\x04", b"\x08\x84\x00", b"\x08\x04\x08\x01", b"\x08\x04\x0a\x00"):
        changed = tensor[:at] + dims + tensor[at + 2 :]
        graph = SMALL.SerializeToString()
        other = graph.replace(held(5, tensor), held(5, changed))
        assert other != graph
        with pytest.raises(kernel.Refused):
            kernel.integers_of(HONEST.replace(held(7, graph), held(7, other)))


def test_categories_that_collide_are_one_label():
    """Of two equal keys one counts: the row is still one of those in range."""
    file = Edited("window-text-1.4-two")
    keys = next(a for a in file.node("row").attribute if a.name == "keys_strings")
    keys.strings[1] = keys.strings[0]
    honest = kernel.integers_of(FILES["window-text-1.4-two"])
    assert kernel.integers_of(file.bytes()).ratio() == honest.ratio()


def test_words_are_not_listed_before_they_are_counted():
    file = Edited(UNBIASED)
    file.constant("words_per_label", 7, [2**62])
    with pytest.raises(kernel.Refused, match="number of words"):
        kernel.integers_of(file.bytes())


def test_many_segments_of_one_answer_take_no_square_of_time():
    """2^17 segments, and every one is a place where the most could be covered."""
    extra = [(1 + i % 3, i % 2) for i in range(1 << 17)]
    total = sum(length for length, _ in extra)
    base = [((1 << 18) - total // 2, 0), (total, 1)]
    bits = 20
    window_size = (1 << bits) - sum(length for length, _ in base)
    offsets = [0, total - window_size] if total > window_size else [0]
    made = kernel.Window(bits, base, extra, offsets)
    assert made.ratio() > 1


def test_a_refusal_shows_no_text_of_the_file_as_it_is(tmp_path):
    """A name could be an escape sequence, which a terminal would obey, or very long."""
    file = Edited(WINDOW)
    file.constant("\x1b]0;owned\x07\r" + "x" * 100_000, 7, [0])
    file.graph.initializer.append(file.graph.initializer[-1])
    path = tmp_path / "letter.onnx"
    path.write_bytes(file.bytes())
    done = subprocess.run(
        [sys.executable, kernel.__file__, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.isprintable()
    assert "owned" in line
    assert len(line) < 1_000 + len(str(path))
