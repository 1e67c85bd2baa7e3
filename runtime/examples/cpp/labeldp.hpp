// Runs a labeldp artifact with ONNX Runtime: one header (C++17) to paste into a service. It needs
// the C++ API of ONNX Runtime (1.21 or newer), libcrypto and nlohmann/json.
//
//   labeldp::Randomizer randomizer("doctor-visits.onnx");
//   std::vector<double> noisy = randomizer.randomize<double>(std::vector<std::int64_t>{0, 3, 12});
//   // of an artifact with a table for each public group:
//   auto by_group = other.randomize<double>(labels, {{"age", ages}, {"work", works}});
//   // of an artifact that answers with sets of labels, by their numbers:
//   std::vector<std::string> classes = by_sets.members<std::string>(std::int64_t{7});
//
// Randomizing one label twice spends its ε twice.

#pragma once

#include <onnxruntime_cxx_api.h>
#include <nlohmann/json.hpp>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
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

/// What a file says as one line of ASCII for terminals and logs, the rest escaped as in JSON.
inline std::string printable(const nlohmann::json& value) {
  const std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  return (value.is_string() ? text.substr(1, text.size() - 2) : text).substr(0, 200);
}

/// A column of public groups, one a label; it must live until the call returns. Listed groups are
/// std::int64_t or std::string, numbers for bands double; std::nullopt is no listed group.
class Groups {
 public:
  template <class T>
  Groups(const std::vector<T>& values) : values_(&values) {}
  template <class T>
  Groups(const std::vector<T>&&) = delete;  // which would not live so long

 private:
  friend class Randomizer;
  template <class T>
  using Values = const std::vector<T>*;
  std::variant<Values<std::int64_t>, Values<double>, Values<std::string>,
               Values<std::optional<std::int64_t>>, Values<std::optional<double>>,
               Values<std::optional<std::string>>>
      values_;
};

/// The columns of groups by their names.
using Columns = std::map<std::string, Groups>;

/// A compiled label randomizer: fresh secure words at every call. Calls are thread-safe.
class Randomizer {
 public:
  /// Load an artifact and test the platform with the vectors inside. Throws ArtifactError.
  explicit Randomizer(const std::string& path) {
    const std::string bytes = read_file(path);
    if (!checksum_holds(bytes)) {
      throw ArtifactError(path + ": is no labeldp artifact, or damaged: it lacks a right checksum");
    }
    nlohmann::json vectors;
    try {
      Ort::SessionOptions options;
      options.SetIntraOpNumThreads(1).SetInterOpNumThreads(1).SetLogSeverityLevel(4);
      session_ = Ort::Session(environment(), bytes.data(), bytes.size(), options);
      label_type_ = session_.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetElementType();
      output_type_ = session_.GetOutputTypeInfo(0).GetTensorTypeAndShapeInfo().GetElementType();
      const auto shape = session_.GetInputTypeInfo(1).GetTensorTypeAndShapeInfo().GetShape();
      width_ = shape.size() == 1 ? 1 : static_cast<std::size_t>(shape.at(1));
      Ort::AllocatorWithDefaultOptions allocator;
      for (std::size_t i = 2; i < session_.GetInputCount(); ++i) {
        const auto type = session_.GetInputTypeInfo(i).GetTensorTypeAndShapeInfo().GetElementType();
        groups_.push_back({"", session_.GetInputNameAllocated(i, allocator).get(), type, {}});
      }
    } catch (const std::exception&) {
      throw ArtifactError(path + ": is no file that onnxruntime loads");
    }
    const std::string format = metadata("labeldp.format_version");
    if (format.substr(0, format.find('.')) != "1") {
      throw ArtifactError(path + ": format " + printable(format) + " is unknown: upgrade this reader");
    }
    try {
      certificate_ = nlohmann::json::parse(metadata("labeldp.certificate"));
      const auto& domain = certificate_.at("label").at("domain");
      const auto& rule = domain.at("out_of_domain");
      missing_ = rule == "clamp" ? domain.at("min") : rule.at("default");
      if (!certificate_.at("insecure").is_null()) {
        throw ArtifactError(path + ": made for tests only: " + printable(certificate_["insecure"]));
      }
      if (!name_groups() || !read_sets()) {
        throw ArtifactError(path + ": its certificate is damaged");
      }
      vectors = nlohmann::json::parse(metadata("labeldp.self_test"));
    } catch (const nlohmann::json::exception&) {
      throw ArtifactError(path + ": its certificate is damaged");
    }
    if (!passes_self_test(vectors)) {
      throw ArtifactError(path + ": onnxruntime computes wrongly here: use another version");
    }
  }

  /// The claims in the file. `labeldp verify` proves them, once, before deployment.
  const nlohmann::json& certificate() const { return certificate_; }

  /// What stands in for a null label, by the artifact's out-of-domain rule.
  template <class Label>
  Label missing() const {
    return missing_.get<Label>();
  }

  /// Private labels. Label is std::int64_t, double or std::string, and Output double, the type of
  /// the categories, or std::int64_t where private labels are numbers of sets (see `members`), as
  /// the artifact demands: std::invalid_argument otherwise. NaN, text that is
  /// no UTF-8 and labels outside the domain follow the out-of-domain rule; no label's value throws,
  /// because an error would disclose it.
  ///
  /// An artifact with a table for each public group takes `columns`, the `group_columns()` by name:
  /// std::invalid_argument unless each has its type and one group a label. What is not listed has
  /// the table of all other groups.
  template <class Output, class Label>
  std::vector<Output> randomize(const std::vector<Label>& labels,
                                const Columns& columns = {}) const {
    std::vector<std::uint64_t> words(std::min(labels.size(), kChunk) * width_);
    return in_chunks<Output>(labels, columns, [&](std::size_t, std::size_t count) {
      const int size = static_cast<int>(count * width_ * sizeof(std::uint64_t));
      if (RAND_bytes(reinterpret_cast<unsigned char*>(words.data()), size) != 1) {
        throw std::runtime_error("the secure random generator failed");
      }
      return words.data();
    });
  }

  /// As above, where labels may be null: std::nullopt follows the out-of-domain rule, too.
  template <class Output, class Label>
  std::vector<Output> randomize(const std::vector<std::optional<Label>>& labels,
                                const Columns& columns = {}) const {
    return randomize<Output>(without_nulls<Output>(labels), columns);
  }

  /// As `randomize`, with words that the caller brings, for tests: each label takes its share in
  /// turn. They must be uniform, secret and never used twice.
  template <class Output, class Label>
  std::vector<Output> apply_words(const std::vector<Label>& labels,
                                  std::vector<std::uint64_t> words,
                                  const Columns& columns = {}) const {
    if (words.size() != labels.size() * width_) {
      throw std::invalid_argument("expected " + std::to_string(width_) + " words for each label");
    }
    return in_chunks<Output>(labels, columns, [&](std::size_t start, std::size_t) {
      return words.data() + start * width_;
    });
  }

  template <class Output, class Label>
  std::vector<Output> apply_words(const std::vector<std::optional<Label>>& labels,
                                  std::vector<std::uint64_t> words,
                                  const Columns& columns = {}) const {
    return apply_words<Output>(without_nulls<Output>(labels), std::move(words), columns);
  }

  /// The labels in a private label, where private labels are sets of them, in the order of the
  /// domain: Label is std::int64_t or std::string, and Output as in `randomize`. Subset selection
  /// answers with the number of a set, or, at a large ε, with a label, which is a set of one.
  ///
  /// Throws std::invalid_argument for an artifact of another mechanism, whose private labels are no
  /// sets, for other types, and for what is no private label of this artifact.
  template <class Label, class Output>
  std::vector<Label> members(const Output& output) const {
    if constexpr (std::is_integral_v<Output> && !std::is_same_v<Output, std::int64_t>) {
      return members<Label>(static_cast<std::int64_t>(output));
    } else {
      if (!sets_) {
        throw std::invalid_argument("the private labels of this artifact are no sets of labels");
      }
      require_types<Output, Label>();
      return sets_->blocks.empty() ? sets_->template one<Label>(output)
                                   : sets_->template of<Label>(output);
    }
  }

  /// Element type of the labels: int64, double or string.
  ONNXTensorElementDataType label_type() const { return label_type_; }

  /// Element type of the private labels: double, or the type of the categories.
  ONNXTensorElementDataType output_type() const { return output_type_; }

  /// The columns that the groups come from; none if there is one table for all labels.
  std::vector<std::string> group_columns() const {
    std::vector<std::string> names;
    for (const auto& column : groups_) names.push_back(column.name);
    return names;
  }

 private:
  struct GroupInput {
    std::string name, input;
    ONNXTensorElementDataType type;
    nlohmann::json unlisted;  // stands in for a null
  };

  /// Sets of the labels of a domain: of `categories`, or of the integers from `min` on.
  struct Sets {
    nlohmann::json categories = nlohmann::json::array();
    std::int64_t min = 0;
    std::uint64_t count = 0;          // of labels
    std::vector<std::string> blocks;  // each a number in hex, bit i for label i; none: the labels

    template <class Label>
    Label label(std::uint64_t i) const {
      if (!categories.empty()) return categories[static_cast<std::size_t>(i)].get<Label>();
      if constexpr (std::is_same_v<Label, std::string>) {
        throw std::invalid_argument("the labels are numbers");
      } else {
        return static_cast<Label>(min + static_cast<std::int64_t>(i));
      }
    }

    /// The labels in the set of a number.
    template <class Label, class Output>
    std::vector<Label> of(const Output& output) const {
      if constexpr (!std::is_same_v<Output, std::string>) {
        if (output >= 0 && output < static_cast<Output>(blocks.size())) {
          const std::string& block = blocks[static_cast<std::size_t>(output)];
          std::vector<Label> labels;
          for (std::uint64_t i = 0; i < count; ++i) {
            const char digit = block[block.size() - 1 - static_cast<std::size_t>(i / 4)];
            if (hex_value(digit) >> (i % 4) & 1) labels.push_back(label<Label>(i));
          }
          return labels;
        }
      }
      throw std::invalid_argument("expected the number of a set, 0 to " +
                                  std::to_string(blocks.size() - 1));
    }

    /// The label itself, where private labels are labels.
    template <class Label, class Output>
    std::vector<Label> one(const Output& output) const {
      if constexpr (std::is_same_v<Label, Output>) {
        for (const auto& category : categories) {
          if (category.get<Label>() == output) return {output};
        }
      }
      if constexpr (std::is_arithmetic_v<Label> && std::is_arithmetic_v<Output>) {
        const std::int64_t max = min + static_cast<std::int64_t>(count) - 1;
        const bool inside = output >= static_cast<Output>(min) && output <= static_cast<Output>(max);
        if (categories.empty() && inside) {
          const auto whole = static_cast<std::int64_t>(output);
          if (static_cast<Output>(whole) == output) return {static_cast<Label>(whole)};
        }
      }
      throw std::invalid_argument("this is no private label of the artifact");
    }
  };

  static unsigned hex_value(char digit) {
    return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }

  static constexpr std::size_t kChunk = 1 << 15;  // the tensors of one chunk stay in a core's cache
  static constexpr std::int64_t kExact = std::int64_t{1} << 53;  // integers that doubles hold
  static constexpr std::streamoff kMaxFileBytes = std::streamoff{64} << 20;

  static Ort::Env& environment() {
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

  template <class Output, class Label>
  void require_types() const {
    if (element_type<Label>() != label_type_ || element_type<Output>() != output_type_) {
      throw std::invalid_argument("the artifact has labels or outputs of another type");
    }
  }

  template <class Output, class Label>
  std::vector<Label> without_nulls(const std::vector<std::optional<Label>>& labels) const {
    require_types<Output, Label>();
    const Label null = missing<Label>();
    std::vector<Label> values;
    values.reserve(labels.size());
    for (const auto& label : labels) values.push_back(label.value_or(null));
    return values;
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
      nlohmann::json& other = groups_[i].unlisted;
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

  /// Reads the sets of labels that private labels are, if they are that; false if they are damaged.
  bool read_sets() {
    const auto stated = certificate_.find("sets");
    if (stated == certificate_.end()) return true;
    Sets sets;
    const auto& domain = certificate_.at("label").at("domain");
    if (domain.at("kind") == "integer") {
      if (label_type_ != element_type<std::int64_t>()) return false;
      if (!is_below(domain.at("min"), kExact) || !is_below(domain.at("max"), kExact)) return false;
      sets.min = domain.at("min").get<std::int64_t>();
      const auto max = domain.at("max").get<std::int64_t>();
      if (max < sets.min) return false;
      sets.count = static_cast<std::uint64_t>(max - sets.min) + 1;
    } else {
      sets.categories = domain.at("values");
      sets.count = sets.categories.size();
      const bool texts = label_type_ == element_type<std::string>();
      const auto fits = [&](const nlohmann::json& value) {
        return texts ? value.is_string()
                     : is_below(value, std::numeric_limits<std::int64_t>::max()) &&
                           label_type_ == element_type<std::int64_t>();
      };
      if (!sets.categories.is_array() || sets.count == 0) return false;
      if (!std::all_of(sets.categories.begin(), sets.categories.end(), fits)) return false;
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

  /// Throws std::invalid_argument unless there is one group a label, of the right type, in each.
  void require_groups(const Columns& columns, std::size_t count) const {
    if (groups_.empty() && !columns.empty()) {
      throw std::invalid_argument("the artifact has one table for all labels: it takes no groups");
    }
    for (const auto& group : groups_) {
      const auto found = columns.find(group.name);
      if (found == columns.end()) {
        throw std::invalid_argument("expected a column " + printable(group.name) + " of groups");
      }
      std::visit(
          [&](const auto* values) {
            if (type_of(values) != group.type || values->size() != count) {
              throw std::invalid_argument("the column " + printable(group.name) +
                                          " has groups of another type, or not one a label");
            }
          },
          found->second.values_);
    }
  }

  template <class Output, class Label, class Words>
  std::vector<Output> in_chunks(const std::vector<Label>& labels, const Columns& columns,
                                Words words) const {
    require_types<Output, Label>();
    require_groups(columns, labels.size());
    std::vector<Output> outputs(labels.size());
    for (std::size_t start = 0; start < labels.size(); start += kChunk) {
      const std::size_t count = std::min(labels.size() - start, kChunk);
      run(labels, columns, words(start, count), start, count, outputs.data() + start);
    }
    return outputs;
  }

  template <class Output, class Label>
  void run(const std::vector<Label>& labels, const Columns& columns, std::uint64_t* words,
           std::size_t start, std::size_t count, Output* outputs) const {
    const std::int64_t n = static_cast<std::int64_t>(count);
    const std::int64_t shape[] = {n, static_cast<std::int64_t>(width_)};
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<Ort::Value> inputs;
    inputs.push_back(tensor(labels.data() + start, n));
    inputs.push_back(
        Ort::Value::CreateTensor(memory, words, count * width_, shape, width_ == 1 ? 1 : 2));
    std::vector<const char*> names = {"label", "entropy"};
    for (const auto& group : groups_) {
      const auto add = [&](const auto* values) {
        inputs.push_back(tensor(values->data() + start, n, group.unlisted));
      };
      std::visit(add, columns.at(group.name).values_);
      names.push_back(group.input.c_str());
    }
    const char* const output_name = "private_label";
    const std::vector<Ort::Value> results = session_.Run(
        Ort::RunOptions{nullptr}, names.data(), inputs.data(), inputs.size(), &output_name, 1);
    if constexpr (std::is_same_v<Output, std::string>) {
      for (std::size_t i = 0; i < count; ++i) outputs[i] = results[0].GetStringTensorElement(i);
    } else {
      std::copy_n(results[0].GetTensorData<Output>(), count, outputs);
    }
  }

  /// A tensor in which `other` stands in for nulls.
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
    switch (label_type_) {
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return passes<double>(vectors);
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
        return passes<std::string>(vectors);
      default:
        return passes<std::int64_t>(vectors);
    }
  }

  template <class Label>
  bool passes(const nlohmann::json& vectors) const {
    if (output_type_ == element_type<double>()) return passes<Label, double>(vectors);
    return output_type_ == element_type<std::string>() ? passes<Label, std::string>(vectors)
                                                       : passes<Label, std::int64_t>(vectors);
  }

  template <class Label, class Output>
  bool passes(const nlohmann::json& vectors) const {
    try {
      const auto expected = parse_all<Output>(vectors.at("outputs"));
      std::vector<std::uint64_t> words;
      for (const auto& row : vectors.at("words")) {
        for (const std::string& word : row.get<std::vector<std::string>>()) {
          words.push_back(std::stoull(word, nullptr, 16));
        }
      }
      Columns columns;
      std::vector<std::vector<std::int64_t>> integers(groups_.size());
      std::vector<std::vector<double>> numbers(groups_.size());
      std::vector<std::vector<std::string>> texts(groups_.size());
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        for (const auto& row : vectors.at("groups")) texts[i].push_back(row.at(i));
        if (groups_[i].type == element_type<std::string>()) {
          columns.emplace(groups_[i].name, texts[i]);
        } else if (groups_[i].type == element_type<double>()) {
          numbers[i] = parse_all<double>(texts[i]);
          columns.emplace(groups_[i].name, numbers[i]);
        } else {
          integers[i] = parse_all<std::int64_t>(texts[i]);
          columns.emplace(groups_[i].name, integers[i]);
        }
      }
      const auto labels = parse_all<Label>(vectors.at("labels"));
      const auto outputs = apply_words<Output>(labels, words, columns);
      return !outputs.empty() && outputs == expected;
    } catch (const std::exception&) {
      return false;
    }
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
  ONNXTensorElementDataType label_type_{};
  ONNXTensorElementDataType output_type_{};
  std::size_t width_ = 1;  // random words a label
  nlohmann::json certificate_;
  nlohmann::json missing_;
  std::vector<GroupInput> groups_;
  std::optional<Sets> sets_;
};

}  // namespace labeldp
