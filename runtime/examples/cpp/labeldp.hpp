// Runs a labeldp artifact with ONNX Runtime: one header (C++17) to paste into a service. It needs
// the C++ API of ONNX Runtime (1.21 or newer), libcrypto and nlohmann/json.
//
//   labeldp::Randomizer randomizer("doctor-visits.onnx");
//   std::vector<double> noisy = randomizer.randomize<double>(std::vector<std::int64_t>{0, 3, 12});
//   // of an artifact with a table for each public group:
//   auto by_group = other.randomize<double>(labels, {{"age", ages}, {"work", works}});
//   // of an artifact that answers with sets of labels, by their numbers:
//   std::vector<std::string> classes = by_sets.members<std::string>(std::int64_t{7});
//   // of an artifact whose labels have several columns:
//   auto columns = joint.randomize({{"converted", converted}, {"value", values}});
//
// Randomizing one label twice spends its ε twice.

#pragma once

#include <onnxruntime_cxx_api.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#else
#include <sys/random.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace labeldp {

/// The artifact cannot be used; the message says why.
struct ArtifactError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Text of a file as one line of ASCII for terminals and logs, escaped as in JSON.
inline std::string printable(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return (value.is_string() ? text.substr(1, text.size() - 2) : text).substr(0, 200);
}

/// Fresh random bytes of the kernel, by the system call itself: the C library may keep some of its
/// own in the process.
inline void kernel_bytes(unsigned char* place, std::size_t size) {
  while (size > 0) {
    const std::size_t part = std::min<std::size_t>(size, 256);
#ifdef __linux__
    const long found = syscall(SYS_getrandom, place, part, 0);
#else
    const long found = getentropy(place, part) == 0 ? static_cast<long>(part) : -1;
#endif
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) throw std::runtime_error("the kernel gave no random bytes");
    place += found;
    size -= static_cast<std::size_t>(found);
  }
}

/// Fresh secret uniform words: few come from the kernel, many are the stream of AES-256 in counter
/// mode under a key from the kernel. No generator is kept between calls: one such as OpenSSL's
/// RAND_bytes draws the same in a copy of the process with the same process id.
inline void fill_with_random_words(std::vector<std::uint64_t>& words) {
  unsigned char* const place = reinterpret_cast<unsigned char*>(words.data());
  const std::size_t size = words.size() * sizeof(std::uint64_t);
  if (size <= 1024) return kernel_bytes(place, size);
  std::fill(words.begin(), words.end(), 0);
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const std::array<unsigned char, 16> first_block{};
  std::array<unsigned char, 32> key;
  constexpr std::size_t kBytesAKey = 1 << 24;
  for (std::size_t start = 0; start < size; start += kBytesAKey) {
    kernel_bytes(key.data(), key.size());
    const int part = static_cast<int>(std::min(size - start, kBytesAKey));
    int written = 0;
    if (cipher == nullptr ||
        EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_ctr(), nullptr, key.data(),
                           first_block.data()) != 1 ||
        EVP_EncryptUpdate(cipher.get(), place + start, &written, place + start, part) != 1 ||
        written != part) {
      throw std::runtime_error("OpenSSL's AES failed: there are no random bits");
    }
  }
}

/// A column of labels or of public groups, one a row; it must live until the call returns. Integers
/// and integer categories are std::int64_t, text std::string, real numbers and those for bands
/// double; std::nullopt is a null label, or no listed group.
class Column {
 public:
  template <class T>
  using Pointer = const std::vector<T>*;
  using AnyPointer = std::variant<Pointer<std::int64_t>, Pointer<double>, Pointer<std::string>,
                                  Pointer<std::optional<std::int64_t>>,
                                  Pointer<std::optional<double>>,
                                  Pointer<std::optional<std::string>>>;

  template <class T, class = std::enable_if_t<std::is_constructible_v<AnyPointer, Pointer<T>>>>
  Column(const std::vector<T>& values) : values_(&values) {}
  template <class T>
  Column(const std::vector<T>&&) = delete;  // which would not live so long

 private:
  friend class Randomizer;
  std::size_t size() const {
    return std::visit([](const auto* values) { return values->size(); }, values_);
  }

  AnyPointer values_;
};
using Groups = Column;

/// Columns by their names.
using Columns = std::map<std::string, Column>;

/// A private column.
using Values =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

/// A label of several columns, one value a column.
using Combination = std::vector<std::variant<std::int64_t, double, std::string>>;

/// A compiled label randomizer: fresh secure random bits at every call. Calls are thread-safe.
class Randomizer {
 public:
  /// Load an artifact and test the platform with the vectors inside. Throws ArtifactError.
  /// `prepared` says that the rows meet the certificate's rules of persons (`person`) or of labels
  /// that change (`mature`), which only `labeldp randomize` enforces.
  explicit Randomizer(const std::string& path, bool prepared = false) {
    const std::string bytes = read_file(path);
    if (!checksum_holds(bytes)) {
      throw ArtifactError(path + ": is not a labeldp artifact, or is damaged: it has no valid checksum");
    }
    nlohmann::json vectors;
    try {
      Ort::SessionOptions options;
      options.SetIntraOpNumThreads(1).SetInterOpNumThreads(1).SetLogSeverityLevel(4);
      session_ = Ort::Session(environment(), bytes.data(), bytes.size(), options);
      Ort::AllocatorWithDefaultOptions allocator;
      std::vector<Part>* parts = &labels_;  // which are before the words, as groups are behind them
      for (std::size_t i = 0; i < session_.GetInputCount(); ++i) {
        const std::string name = session_.GetInputNameAllocated(i, allocator).get();
        const auto info = session_.GetInputTypeInfo(i);
        const auto tensor = info.GetTensorTypeAndShapeInfo();
        if (name != "entropy") {
          parts->push_back({"", name, tensor.GetElementType(), {}});
          continue;
        }
        const auto shape = tensor.GetShape();
        width_ = shape.size() == 1 ? 1 : static_cast<std::size_t>(shape.at(1));
        limbs_ = tensor.GetElementType() == element_type<std::int64_t>();
        parts = &groups_;
      }
      for (std::size_t i = 0; i < session_.GetOutputCount(); ++i) {
        const auto info = session_.GetOutputTypeInfo(i);
        const auto type = info.GetTensorTypeAndShapeInfo().GetElementType();
        outputs_.push_back({"", session_.GetOutputNameAllocated(i, allocator).get(), type, {}});
      }
    } catch (const std::exception&) {
      throw ArtifactError(path + ": is not a file that onnxruntime can load");
    }
    const std::string format = metadata("labeldp.format_version");
    if (format.substr(0, format.find('.')) != "1") {
      throw ArtifactError(path + ": format " + printable(format) + " is unknown: upgrade this reader");
    }
    try {
      certificate_ = nlohmann::json::parse(metadata("labeldp.certificate"));
      if (limbs_ != 0) {
        limbs_ = certificate_.at("portable").at("limbs_per_word").get<std::size_t>();
        if ((limbs_ != 2 && limbs_ != 3) || width_ % limbs_ != 0) {
          throw ArtifactError(path + ": its certificate is damaged");
        }
        width_ /= limbs_;
      }
      if (!name_labels()) throw ArtifactError(path + ": its certificate is damaged");
      if (!certificate_.at("insecure").is_null()) {
        throw ArtifactError(path + ": made for tests only: " + printable(certificate_["insecure"]));
      }
      if (!prepared && (certificate_.contains("person") || certificate_.contains("mature"))) {
        throw ArtifactError(path + ": its \u03b5 holds only if the rows meet its rules of persons or of "
                            "labels that change, as labeldp randomize enforces: if they do, say "
                            "prepared = true");
      }
      if (!name_groups() || !read_sets() || !has_outputs()) {
        throw ArtifactError(path + ": its certificate is damaged");
      }
      vectors = nlohmann::json::parse(metadata("labeldp.self_test"));
    } catch (const nlohmann::json::exception&) {
      throw ArtifactError(path + ": its certificate is damaged");
    }
    if (!passes_self_test(vectors)) {
      throw ArtifactError(path + ": onnxruntime gives wrong results here: use another version");
    }
  }

  /// The claims in the file. `labeldp verify` proves them, once, before deployment.
  const nlohmann::json& certificate() const { return certificate_; }

  /// What replaces a null label, by the artifact's out-of-domain rule.
  template <class Label>
  Label missing() const {
    require_one_column();
    return labels_[0].missing.get<Label>();
  }

  /// The same in a column of the labels. Throws std::invalid_argument if none has this name.
  template <class Label>
  Label missing(const std::string& column) const {
    for (const auto& part : labels_) {
      if (part.name == column) return part.missing.get<Label>();
    }
    throw std::invalid_argument("the labels have no column of this name");
  }

  /// Private labels. Label is std::int64_t, double or std::string, and Output double, the type of
  /// the categories, or std::int64_t where private labels are numbers of sets (see `members`), as
  /// the artifact demands: std::invalid_argument otherwise. NaN, text that is
  /// not UTF-8 and labels outside the domain follow the out-of-domain rule. No label's value throws,
  /// because an error would disclose it.
  ///
  /// An artifact with a table for each public group takes `columns`, the `group_columns()` by name:
  /// std::invalid_argument unless each has its type and one group per label. What is not listed has
  /// the table of all other groups.
  template <class Output, class Label>
  std::vector<Output> randomize(const std::vector<Label>& labels,
                                const Columns& columns = {}) const {
    return answer<Output>(labels, columns, fresh_words());
  }

  /// As above, where labels may be null: std::nullopt follows the out-of-domain rule, too.
  template <class Output, class Label>
  std::vector<Output> randomize(const std::vector<std::optional<Label>>& labels,
                                const Columns& columns = {}) const {
    return answer<Output>(labels, columns, fresh_words());
  }

  /// Private columns by their names, of an artifact whose labels have several: `labels` are the
  /// `label_columns()` by name, `groups` the `group_columns()`, if there are any.
  /// std::invalid_argument unless each has its type and one value per row.
  std::map<std::string, Values> randomize(const Columns& labels, const Columns& groups = {}) const {
    return by_name(answers(label_inputs<Combination>(labels, groups), fresh_words()));
  }

  /// As above, where private labels are numbers of sets: Output is std::int64_t.
  template <class Output>
  std::vector<Output> randomize(const Columns& labels, const Columns& groups = {}) const {
    return only<Output>(answers(label_inputs<Output>(labels, groups), fresh_words()));
  }

  /// As `randomize`, with words that the caller supplies, for tests: each label takes its share in
  /// turn. They must be uniform, secret and never used twice.
  template <class Output, class Label>
  std::vector<Output> apply_words(const std::vector<Label>& labels,
                                  std::vector<std::uint64_t> words,
                                  const Columns& columns = {}) const {
    return answer<Output>(labels, columns, given_words(words, labels.size()));
  }

  template <class Output, class Label>
  std::vector<Output> apply_words(const std::vector<std::optional<Label>>& labels,
                                  std::vector<std::uint64_t> words,
                                  const Columns& columns = {}) const {
    return answer<Output>(labels, columns, given_words(words, labels.size()));
  }

  std::map<std::string, Values> apply_words(const Columns& labels,
                                            std::vector<std::uint64_t> words,
                                            const Columns& groups = {}) const {
    const Inputs inputs = label_inputs<Combination>(labels, groups);
    return by_name(answers(inputs, given_words(words, inputs[0].size())));
  }

  template <class Output>
  std::vector<Output> apply_words(const Columns& labels, std::vector<std::uint64_t> words,
                                  const Columns& groups = {}) const {
    const Inputs inputs = label_inputs<Output>(labels, groups);
    return only<Output>(answers(inputs, given_words(words, inputs[0].size())));
  }

  /// The labels in a private label, where private labels are sets of them, in the order of the
  /// domain: Label is std::int64_t or std::string, and Output as in `randomize`. Subset selection
  /// answers with the number of a set, or, at a large ε, with a label, which is a set of one. Where
  /// labels have several columns, a label is a Combination, and so is a private one at a large ε.
  ///
  /// Throws std::invalid_argument if private labels are not sets, for other types, and
  /// for values that are not private labels of this artifact.
  template <class Label, class Output>
  std::vector<Label> members(const Output& output) const {
    if constexpr (std::is_integral_v<Output> && !std::is_same_v<Output, std::int64_t>) {
      return members<Label>(static_cast<std::int64_t>(output));
    } else {
      if (!sets_) {
        throw std::invalid_argument("the private labels of this artifact are not sets of labels");
      }
      std::vector<Label> labels;
      if constexpr (kIsLabel<Label> && kIsLabel<Output>) {
        require_types(is_type<Label>(labels_) && is_type<Output>(outputs_));
        for (const std::uint64_t number : sets_->members(output)) {
          labels.push_back(sets_->label<Label>(number));
        }
      }
      require_types(kIsLabel<Label> && kIsLabel<Output>);
      return labels;
    }
  }

  /// Element type of the labels: int64, double or string.
  ONNXTensorElementDataType label_type() const {
    require_one_column();
    return labels_[0].type;
  }

  /// Element type of the private labels: double, or the type of the categories.
  ONNXTensorElementDataType output_type() const {
    if (outputs_.size() > 1) require_one_column();
    return outputs_[0].type;
  }

  /// The same of each column of the labels, and of each private column (of sets there is one).
  std::vector<ONNXTensorElementDataType> label_types() const { return types(labels_); }
  std::vector<ONNXTensorElementDataType> output_types() const { return types(outputs_); }

  /// The label columns: one or several.
  std::vector<std::string> label_columns() const { return names(labels_); }

  /// The group columns; none if there is one table for all labels.
  std::vector<std::string> group_columns() const { return names(groups_); }

 private:
  /// A column of labels, groups or private labels.
  struct Part {
    std::string name, graph_name;
    ONNXTensorElementDataType type;
    nlohmann::json missing;  // replaces a null
  };

  using Inputs = std::vector<Column>;  // in the order of the graph's
  using Words = std::function<std::uint64_t*(std::size_t start, std::size_t count)>;
  using Label = Combination::value_type;

  /// The labels of one column: `categories`, or the integers from `min` on, or a grid of doubles.
  struct Domain {
    nlohmann::json categories = nlohmann::json::array();
    std::int64_t min = 0;
    double first = 0, last = 0;  // of the grid, if these differ
    std::uint64_t count = 0;

    Label label(std::uint64_t place) const {
      if (first != last) return grid_point(first, last, count - 1, place);
      if (categories.empty()) return min + static_cast<std::int64_t>(place);
      const auto& category = categories[static_cast<std::size_t>(place)];
      return category.is_string() ? Label(category.get<std::string>())
                                  : Label(category.get<std::int64_t>());
    }

    /// The place of a private label, which of integers is a double; `count` if it is none.
    std::uint64_t place(const Label& output) const {
      if (!categories.empty()) {
        std::uint64_t i = 0;
        while (i < count && label(i) != output) ++i;
        return i;
      }
      const auto* whole = std::get_if<std::int64_t>(&output);
      const auto* number = std::get_if<double>(&output);
      if (first != last) {
        if (!number || !(*number >= first && *number <= last)) return count;
        const double steps = (*number - first) / (last - first) * static_cast<double>(count - 1);
        const auto nearest = static_cast<std::uint64_t>(std::llround(steps));
        return label(nearest) == output ? nearest : count;
      }
      const std::int64_t max = min + static_cast<std::int64_t>(count) - 1;
      if (whole) return *whole >= min && *whole <= max ? distance(min, *whole) : count;
      const bool inside = number && *number >= static_cast<double>(min) &&
                          *number <= static_cast<double>(max) && std::floor(*number) == *number;
      return inside ? distance(min, static_cast<std::int64_t>(*number)) : count;
    }

    static std::uint64_t distance(std::int64_t from, std::int64_t to) {
      return static_cast<std::uint64_t>(to - from);
    }
  };

  /// Sets of labels, by their numbers: of several columns the last moves fastest.
  struct Sets {
    std::vector<Domain> columns;
    std::uint64_t count = 1;          // of labels
    std::vector<std::string> blocks;  // each a number in hex, bit i for label i; none: the labels

    template <class Label>
    Label label(std::uint64_t number) const {
      Combination labels(columns.size());
      for (std::size_t i = columns.size(); i-- > 0; number /= columns[i].count) {
        labels[i] = columns[i].label(number % columns[i].count);
      }
      if constexpr (std::is_same_v<Label, Combination>) {
        return labels;
      } else {
        return std::get<Label>(labels[0]);
      }
    }

    /// The numbers of the labels in a private label.
    template <class Output>
    std::vector<std::uint64_t> members(const Output& output) const {
      if constexpr (std::is_same_v<Output, Combination>) {
        return {number(output)};
      } else if (blocks.empty()) {
        return {number({output})};
      } else if constexpr (std::is_same_v<Output, std::int64_t>) {
        if (output >= 0 && output < static_cast<std::int64_t>(blocks.size())) {
          const std::string& block = blocks[static_cast<std::size_t>(output)];
          std::vector<std::uint64_t> numbers;
          for (std::uint64_t i = 0; i < count; ++i) {
            const char digit = block[block.size() - 1 - static_cast<std::size_t>(i / 4)];
            if (hex_value(digit) >> (i % 4) & 1) numbers.push_back(i);
          }
          return numbers;
        }
      }
      throw std::invalid_argument("expected the number of a set, 0 to " +
                                  std::to_string(blocks.size() - 1));
    }

    /// The number of a private label, where these are labels.
    std::uint64_t number(const Combination& output) const {
      std::uint64_t result = 0;
      bool is_label = output.size() == columns.size();
      for (std::size_t i = 0; is_label && i < columns.size(); ++i) {
        const std::uint64_t place = columns[i].place(output[i]);
        is_label = place < columns[i].count;
        result = result * columns[i].count + place;
      }
      if (!is_label) throw std::invalid_argument("this is not a private label of the artifact");
      return result;
    }
  };

  /// A sum of doubles, times 2^1138, of digits of 32 bits, the least first; of a negative one the
  /// complement.
  using Fixed = std::array<std::uint32_t, 69>;

  /// sum += other · factor.
  static void add(Fixed& sum, const Fixed& other, std::int64_t factor) {
    std::int64_t carry = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const std::int64_t total = carry + sum[i] + factor * other[i];
      sum[i] = static_cast<std::uint32_t>(total);
      carry = total >> 32;
    }
  }

  static Fixed fixed(double x) {
    int exponent;
    const double mantissa = std::frexp(std::abs(x), &exponent);
    const auto bits = static_cast<std::uint64_t>(std::ldexp(mantissa, 53));
    Fixed size{}, value{};
    for (int bit = 0; bit < 53; ++bit) {
      const int at = 1138 + exponent - 53 + bit;
      size[at / 32] |= static_cast<std::uint32_t>(bits >> bit & 1) << at % 32;
    }
    add(value, size, x < 0 ? -1 : 1);
    return value;
  }

  /// The double nearest to first + (last − first)·i/steps, halves to the even one, as Python has
  /// it. What the division cuts off decides nothing: steps have 20 bits, so that a quotient of
  /// which 63 bits are 0 is exact.
  static double grid_point(double first, double last, std::uint64_t steps, std::uint64_t i) {
    Fixed sum{}, size{};
    add(sum, fixed(first), static_cast<std::int64_t>(steps - i));
    add(sum, fixed(last), static_cast<std::int64_t>(i));
    const int sign = sum.back() >> 31 ? -1 : 1;
    add(size, sum, sign);
    std::uint64_t rest = 0;
    for (std::size_t digit = size.size(); digit-- > 0; rest %= steps) {
      rest = rest << 32 | size[digit];
      size[digit] = static_cast<std::uint32_t>(rest / steps);
    }
    const auto bit = [&](int at) { return size[at / 32] >> at % 32 & 1; };
    int top = 32 * static_cast<int>(size.size()) - 1;
    while (top > 0 && !bit(top)) --top;
    const int shift = std::max(top - 52, 64);  // the bits to round away
    std::uint64_t whole = 0;
    for (int at = top; at >= shift; --at) whole = whole << 1 | bit(at);
    bool is_more = false;
    for (int at = shift - 2; at >= 0 && !is_more; --at) is_more = bit(at);
    if (bit(shift - 1) && (is_more || (whole & 1))) ++whole;
    return sign * std::ldexp(static_cast<double>(whole), shift - 1138);
  }

  static unsigned hex_value(char digit) {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }

  static constexpr std::size_t kChunk = 1 << 15;  // the tensors of one chunk stay in a core's cache
  static constexpr std::int64_t kExact = std::int64_t{1} << 53;  // integers that doubles hold
  static constexpr std::int64_t kMaxPoints = std::int64_t{1} << 20;  // of a grid
  static constexpr std::streamoff kMaxFileBytes = std::streamoff{64} << 20;

  static Ort::Env& environment() {
    // or onnxruntime, from 1.29 on, sends names and hashes of models to its makers
    [[maybe_unused]] static const int quiet = ::setenv("ORT_DISABLE_TELEMETRY", "1", 0);
    static Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "labeldp");
    return env;
  }

  static std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
    if (size < 0) throw ArtifactError(path + ": cannot be read");
    if (size > kMaxFileBytes) throw ArtifactError(path + ": is too large");
    std::string bytes(static_cast<std::size_t>(size), '\0');
    file.seekg(0);
    if (!file.read(bytes.data(), size)) throw ArtifactError(path + ": cannot be read");
    return bytes;
  }

  /// The integer of 7 bits a byte at `at`, which moves behind it.
  static std::uint64_t varint(const std::string& bytes, std::size_t& at) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < bytes.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes[at++]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw ArtifactError("the file is damaged: an integer does not end");
  }

  /// The checksum is SHA-256 of the same file without the checksum's own entry of 92 bytes. It is
  /// looked for among the fields of the file: a text inside may look like it.
  static bool checksum_holds(const std::string& bytes) {
    const std::string entry = "\x72\x5a\x0a\x16labeldp.content_sha256\x12\x40";
    std::string stated, content = bytes;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t start = at;
      const std::uint64_t tag = varint(bytes, at);
      const std::uint64_t length = varint(bytes, at);  // or, of an integer, its value
      if (tag % 8 == 0) continue;
      if (tag % 8 != 2 || length > bytes.size() - at) return false;
      at += length;
      if (bytes.compare(start, entry.size(), entry) != 0) continue;
      if (!stated.empty()) return false;
      stated = bytes.substr(start + entry.size(), 64);
      content.erase(start, at - start);
    }
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest);
    std::string hex;
    for (const unsigned char byte : digest) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    return hex == stated;
  }

  /// A metadata entry of the file; empty if there is none.
  std::string metadata(const char* key) const {
    Ort::AllocatorWithDefaultOptions allocator;
    const auto text = session_.GetModelMetadata().LookupCustomMetadataMapAllocated(key, allocator);
    return text ? text.get() : "";
  }

  template <class T>
  static constexpr ONNXTensorElementDataType element_type() {
    if constexpr (std::is_same_v<T, std::string>) {
      return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    } else {
      return Ort::TypeToTensorType<T>::type;
    }
  }

  template <class T>
  static constexpr bool kIsLabel =
      std::is_same_v<T, Combination> || std::is_constructible_v<Values, std::vector<T>>;

  /// Whether labels are of a type; of several columns they are combinations.
  template <class T>
  static bool is_type(const std::vector<Part>& parts) {
    if constexpr (std::is_same_v<T, Combination>) {
      return parts.size() > 1;
    } else {
      return parts.size() == 1 && parts[0].type == element_type<T>();
    }
  }

  static void require_types(bool hold) {
    if (!hold) throw std::invalid_argument("the artifact has labels or outputs of another type");
  }

  void require_one_column() const {
    if (labels_.size() == 1) return;
    throw std::invalid_argument("the artifact's labels have several columns: give them by name");
  }

  static std::vector<std::string> names(const std::vector<Part>& parts) {
    std::vector<std::string> names;
    for (const auto& part : parts) names.push_back(part.name);
    return names;
  }

  static std::vector<ONNXTensorElementDataType> types(const std::vector<Part>& parts) {
    std::vector<ONNXTensorElementDataType> types;
    for (const auto& part : parts) types.push_back(part.type);
    return types;
  }

  /// Gives the inputs of labels the names of the certificate; false if it has not as many.
  bool name_labels() {
    const auto& label = certificate_.at("label");
    const auto& domain = label.at("domain");
    const auto joint = certificate_.find("joint");
    const bool is_joint = domain.at("kind") == "joint";
    if (is_joint != (labels_.size() > 1) || is_joint != (joint != certificate_.end())) return false;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const auto& stated = domain_of(i).at("out_of_domain");
      const bool has_nulls = stated.is_object() && stated.contains("nulls");
      const auto& rule = has_nulls ? stated.at("nulls") : stated;
      if (rule == "public") {
        throw ArtifactError("its nulls stay null (nulls: public): use labeldp randomize");
      }
      const bool is_grid = domain_of(i).at("kind") == "grid";
      const auto lowest = [&] { return is_grid ? domain_of(i).at("values").at(0) : domain_of(i).at("min"); };
      labels_[i].missing = rule == "clamp" ? lowest() : rule.at("default");
      const auto& name = is_joint ? joint->at("columns").at(i).at("name") : label.at("column");
      if (is_joint || name.is_string()) labels_[i].name = name.get<std::string>();
      if (!seen.insert(labels_[i].name).second) return false;
    }
    return !is_joint || (domain.at("columns").size() == labels_.size() &&
                         joint->at("columns").size() == labels_.size());
  }

  /// The domain of a column of the labels, as the certificate has it.
  const nlohmann::json& domain_of(std::size_t column) const {
    const auto& domain = certificate_.at("label").at("domain");
    return labels_.size() == 1 ? domain : domain.at("columns").at(column);
  }

  /// Gives the inputs of groups the names of the certificate; false if it has not as many.
  bool name_groups() {
    const auto stated = certificate_.find("groups");
    const auto none = nlohmann::json::array();
    const auto& columns = stated == certificate_.end() ? none : stated->at("columns");
    if (columns.size() != groups_.size()) return false;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].name = columns.at(i).at("name").get<std::string>();
      const auto& values = columns.at(i).at("values");
      const std::set<nlohmann::json> listed(values.begin(), values.end());
      nlohmann::json& other = groups_[i].missing;
      if (groups_[i].type == element_type<double>()) {
        other = std::numeric_limits<double>::quiet_NaN();
      } else if (groups_[i].type == element_type<std::string>()) {
        other = "\xff";  // no UTF-8, as all that are listed
      } else {
        for (other = -1; listed.count(other);) other = other.get<std::int64_t>() - 1;
      }
    }
    return true;
  }

  /// Reads the sets of labels, if private labels are sets; false if they are damaged.
  bool read_sets() {
    const auto stated = certificate_.find("sets");
    if (stated == certificate_.end()) return true;
    Sets sets;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      sets.columns.emplace_back();
      if (!read_domain(domain_of(i), labels_[i].type, sets.columns[i])) return false;
      // Of several columns there are fewer than 2^53 combinations, so that nothing overflows.
      const auto most = static_cast<std::uint64_t>(kExact - 1) / sets.count;
      if (labels_.size() > 1 && sets.columns[i].count > most) return false;
      sets.count *= sets.columns[i].count;
    }
    const auto& blocks = stated->at("blocks");
    if (!blocks.is_null()) {
      sets.blocks = blocks.get<std::vector<std::string>>();
      const auto is_set = [&](const std::string& block) {
        if (block.empty() || block.size() != (sets.count + 3) / 4) return false;
        if (block.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
        return sets.count % 4 == 0 || hex_value(block[0]) >> (sets.count % 4) == 0;
      };
      if (sets.blocks.empty() || certificate_.at("outputs") != sets.blocks.size()) return false;
      if (!std::all_of(sets.blocks.begin(), sets.blocks.end(), is_set)) return false;
    }
    sets_ = std::move(sets);
    return true;
  }

  /// Reads the labels of a column that sets are of; false if the domain is damaged.
  static bool read_domain(const nlohmann::json& stated, ONNXTensorElementDataType type,
                          Domain& domain) {
    if (stated.at("kind") == "integer") {
      if (type != element_type<std::int64_t>()) return false;
      if (!is_below(stated.at("min"), kExact) || !is_below(stated.at("max"), kExact)) return false;
      domain.min = stated.at("min").get<std::int64_t>();
      const auto max = stated.at("max").get<std::int64_t>();
      domain.count = static_cast<std::uint64_t>(max - domain.min) + 1;
      return max >= domain.min;
    }
    if (stated.at("kind") == "real") {
      if (type != element_type<double>()) return false;
      if (!is_below(stated.at("points"), kMaxPoints)) return false;
      const auto points = stated.at("points").get<std::int64_t>();
      domain.first = stated.at("min").get<double>();
      domain.last = stated.at("max").get<double>();
      domain.count = static_cast<std::uint64_t>(points);
      return points > 1 && domain.first < domain.last && std::isfinite(domain.last - domain.first);
    }
    domain.categories = stated.at("values");
    domain.count = domain.categories.size();
    const bool texts = type == element_type<std::string>();
    const auto fits = [&](const nlohmann::json& value) {
      return texts ? value.is_string()
                   : is_below(value, std::numeric_limits<std::int64_t>::max()) &&
                         type == element_type<std::int64_t>();
    };
    if (!domain.categories.is_array() || domain.count == 0) return false;
    return std::all_of(domain.categories.begin(), domain.categories.end(), fits);
  }

  /// Whether the graph answers with what it should: a set's number has no columns.
  bool has_outputs() const {
    return outputs_.size() == (sets_ && !sets_->blocks.empty() ? 1 : labels_.size());
  }

  /// Whether a value is an integer of 64 bits and at most `most` in size, or the least of them.
  static bool is_below(const nlohmann::json& value, std::int64_t most) {
    if (!value.is_number_integer()) return false;
    if (value.is_number_unsigned()) {
      return value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    }
    return value.get<std::int64_t>() >= -most - 1;
  }

  template <class T>
  static constexpr ONNXTensorElementDataType type_of(const std::vector<T>*) {
    return element_type<T>();
  }
  template <class T>
  static constexpr ONNXTensorElementDataType type_of(const std::vector<std::optional<T>>*) {
    return element_type<T>();
  }

  /// Columns in the order of the graph's inputs. Throws std::invalid_argument unless each is there,
  /// of the right type, with as many rows as the first, or as `count`.
  static Inputs in_order(const std::vector<Part>& parts, const Columns& columns,
                         std::optional<std::size_t> count, const std::string& what,
                         const std::string& unit) {
    Inputs inputs;
    for (const auto& part : parts) {
      const auto found = columns.find(part.name);
      if (found == columns.end()) {
        throw std::invalid_argument("expected a column " + printable(part.name) + " of " + what);
      }
      const Column& column = found->second;
      const auto is_type = [&](const auto* values) { return type_of(values) == part.type; };
      if (!std::visit(is_type, column.values_) || column.size() != count.value_or(column.size())) {
        throw std::invalid_argument("the column " + printable(part.name) + " has " + what +
                                    " of another type, or not one a " + unit);
      }
      count = column.size();
      inputs.push_back(column);
    }
    return inputs;
  }

  /// Labels by their columns, whose private ones are to be of a type.
  template <class Output>
  Inputs label_inputs(const Columns& labels, const Columns& groups) const {
    if (labels_.size() == 1) {
      throw std::invalid_argument("the artifact's labels have one column: give a vector of them");
    }
    require_types(is_type<Output>(outputs_));
    return with_groups(in_order(labels_, labels, std::nullopt, "labels", "row"), groups);
  }

  /// The columns of labels, and those of groups behind them.
  Inputs with_groups(Inputs inputs, const Columns& groups) const {
    if (groups_.empty() && !groups.empty()) {
      throw std::invalid_argument("the artifact has one table for all labels and takes no groups");
    }
    for (const Column& column : in_order(groups_, groups, inputs[0].size(), "groups", "label")) {
      inputs.push_back(column);
    }
    return inputs;
  }

  /// One column of labels to one of private labels.
  template <class Output, class Label>
  std::vector<Output> answer(const std::vector<Label>& labels, const Columns& groups,
                             const Words& words) const {
    require_one_column();
    require_types(type_of(&labels) == labels_[0].type && is_type<Output>(outputs_));
    if constexpr (std::is_constructible_v<Column, const std::vector<Label>&>) {
      return only<Output>(answers(with_groups({labels}, groups), words));
    }
    return {};  // which no type that was required comes to
  }

  /// The private column, where there is one, whose type has been required.
  template <class Output>
  static std::vector<Output> only(std::vector<Values> outputs) {
    if constexpr (kIsLabel<Output>) return std::get<std::vector<Output>>(std::move(outputs[0]));
    return {};
  }

  /// Private columns by their names.
  std::map<std::string, Values> by_name(std::vector<Values> outputs) const {
    std::map<std::string, Values> columns;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      columns.emplace(labels_[i].name, std::move(outputs[i]));
    }
    return columns;
  }

  Words fresh_words() const {
    return [this, words = std::vector<std::uint64_t>()](std::size_t, std::size_t count) mutable {
      words.resize(count * width_);
      fill_with_random_words(words);
      return words.data();
    };
  }

  /// Words that live as long as the call, for `rows` labels.
  Words given_words(std::vector<std::uint64_t>& words, std::size_t rows) const {
    if (words.size() != rows * width_) {
      throw std::invalid_argument("expected " + std::to_string(width_) + " words for each label");
    }
    return [this, &words](std::size_t start, std::size_t) { return words.data() + start * width_; };
  }

  /// A column of `rows` values.
  static Values with_rows(ONNXTensorElementDataType type, std::size_t rows) {
    if (type == element_type<double>()) return std::vector<double>(rows);
    if (type == element_type<std::string>()) return std::vector<std::string>(rows);
    return std::vector<std::int64_t>(rows);
  }

  void run(const Inputs& columns, std::uint64_t* words, std::size_t start, std::size_t count,
           std::vector<Values>& outputs) const {
    const std::int64_t n = static_cast<std::int64_t>(count);
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<Ort::Value> inputs;
    std::vector<std::int64_t> limbs;  // which the tensor shows, until the run is over
    const auto show = [&](auto* data, std::size_t width) {
      const std::int64_t shape[] = {n, static_cast<std::int64_t>(width)};
      inputs.push_back(
          Ort::Value::CreateTensor(memory, data, count * width, shape, width == 1 ? 1 : 2));
    };
    if (limbs_ == 0) {
      show(words, width_);
    } else {
      limbs = in_limbs(words, count * width_);
      show(limbs.data(), width_ * limbs_);
    }
    std::vector<const char*> input_names = {"entropy"}, output_names;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Part& part = i < labels_.size() ? labels_[i] : groups_[i - labels_.size()];
      const auto add = [&](const auto* values) {
        inputs.push_back(tensor(values->data() + start, n, part.missing));
      };
      std::visit(add, columns[i].values_);
      input_names.push_back(part.graph_name.c_str());
    }
    for (const auto& part : outputs_) output_names.push_back(part.graph_name.c_str());
    const std::vector<Ort::Value> results =
        session_.Run(Ort::RunOptions{nullptr}, input_names.data(), inputs.data(), inputs.size(),
                     output_names.data(), output_names.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::visit([&](auto& values) { copy(results[i], count, values.data() + start); }, outputs[i]);
    }
  }

  /// Words as portable files take them: the lowest 31 bits of each limb.
  std::vector<std::int64_t> in_limbs(const std::uint64_t* words, std::size_t count) const {
    std::vector<std::int64_t> found;
    found.reserve(count * limbs_);
    for (const std::uint64_t* word = words; word != words + count; ++word) {
      found.push_back(static_cast<std::int64_t>(*word >> 33));
      found.push_back(static_cast<std::int64_t>(*word >> 2 & 0x7fffffff));
      if (limbs_ > 2) found.push_back(static_cast<std::int64_t>((*word & 3) << 29));
    }
    return found;
  }

  template <class T>
  static void copy(const Ort::Value& result, std::size_t count, T* values) {
    if constexpr (std::is_same_v<T, std::string>) {
      for (std::size_t i = 0; i < count; ++i) values[i] = result.GetStringTensorElement(i);
    } else {
      std::copy_n(result.GetTensorData<T>(), count, values);
    }
  }

  /// The private columns of labels and groups of the right types.
  std::vector<Values> answers(const Inputs& inputs, const Words& words) const {
    const std::size_t rows = inputs[0].size();
    std::vector<Values> outputs;
    for (const auto& part : outputs_) outputs.push_back(with_rows(part.type, rows));
    for (std::size_t start = 0; start < rows; start += kChunk) {
      const std::size_t count = std::min(rows - start, kChunk);
      run(inputs, words(start, count), start, count, outputs);
    }
    return outputs;
  }
  /// A tensor in which `other` replaces nulls.
  template <class T>
  static Ort::Value tensor(const std::optional<T>* values, std::int64_t n,
                           const nlohmann::json& other) {
    const T null = other.get<T>();
    std::vector<T> plain;
    for (std::int64_t i = 0; i < n; ++i) plain.push_back(values[i].value_or(null));
    if constexpr (std::is_same_v<T, std::string>) {
      return tensor(plain.data(), n);
    } else {
      Ort::AllocatorWithDefaultOptions allocator;
      auto copy = Ort::Value::CreateTensor<T>(allocator, &n, 1);
      std::copy_n(plain.data(), n, copy.template GetTensorMutableData<T>());
      return copy;
    }
  }

  template <class Label>
  static Ort::Value tensor(const Label* labels, std::int64_t n, const nlohmann::json& = {}) {
    if constexpr (std::is_same_v<Label, std::string>) {
      Ort::AllocatorWithDefaultOptions allocator;
      auto tensor = Ort::Value::CreateTensor(allocator, &n, 1, element_type<Label>());
      for (std::int64_t i = 0; i < n; ++i) {  // by length, so that a NUL inside does not cut it
        char* text = tensor.GetResizedStringTensorElementBuffer(i, labels[i].size());
        std::copy(labels[i].begin(), labels[i].end(), text);
      }
      return tensor;
    } else {
      const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
      // ONNX Runtime only reads an input.
      return Ort::Value::CreateTensor(memory, const_cast<Label*>(labels), n, &n, 1);
    }
  }

  bool passes_self_test(const nlohmann::json& vectors) const {
    try {
      std::vector<std::uint64_t> words;
      for (const auto& row : vectors.at("words")) {
        for (const std::string& word : row.get<std::vector<std::string>>()) {
          words.push_back(std::stoull(word, nullptr, 16));
        }
      }
      std::vector<Values> given = read_columns(labels_, vectors.at("labels"));
      if (!groups_.empty()) {
        for (auto& column : read_columns(groups_, vectors.at("groups"))) given.push_back(column);
      }
      Inputs inputs;
      for (const auto& column : given) {
        std::visit([&](const auto& values) { inputs.emplace_back(values); }, column);
        if (inputs.back().size() != inputs[0].size()) return false;
      }
      const auto outputs = answers(inputs, given_words(words, inputs[0].size()));
      return !words.empty() && outputs == read_columns(outputs_, vectors.at("outputs"));
    } catch (const std::exception&) {
      return false;
    }
  }

  /// The columns of vectors, whose rows are a text, or one a column.
  static std::vector<Values> read_columns(const std::vector<Part>& parts,
                                          const nlohmann::json& rows) {
    std::vector<Values> columns;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      std::vector<std::string> texts;
      for (const auto& row : rows) texts.push_back(row.is_array() ? row.at(i) : row);
      if (parts[i].type == element_type<double>()) {
        columns.push_back(parse_all<double>(texts));
      } else if (parts[i].type == element_type<std::string>()) {
        columns.push_back(texts);
      } else {
        columns.push_back(parse_all<std::int64_t>(texts));
      }
    }
    return columns;
  }

  template <class T>
  static std::vector<T> parse_all(const std::vector<std::string>& texts) {
    if constexpr (std::is_same_v<T, std::string>) {
      return texts;
    } else {
      std::vector<T> values(texts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {  // from_chars heeds no locale
        const char* end = texts[i].data() + texts[i].size();
        const auto parsed = std::from_chars(texts[i].data(), end, values[i]);
        if (parsed.ec != std::errc() || parsed.ptr != end) throw std::invalid_argument(texts[i]);
      }
      return values;
    }
  }

  mutable Ort::Session session_{nullptr};  // Run is thread-safe, though not const in C++
  std::size_t width_ = 1;  // random words a label
  std::size_t limbs_ = 0;  // of a word; 0 if the graph takes whole words
  nlohmann::json certificate_;
  std::vector<Part> labels_, groups_, outputs_;
  std::optional<Sets> sets_;
};

}  // namespace labeldp
