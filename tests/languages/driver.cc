// driver DIRECTORY: answers DIRECTORY/cases.json into DIRECTORY/cpp.json, as harness.py says.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>

#include "labeldp.hpp"

using nlohmann::json;

template <class T>
std::vector<T> read(const json& labels, std::size_t repeat) {
  std::vector<T> values;
  values.reserve(labels.size() * repeat);
  for (std::size_t i = 0; i < repeat; ++i) {
    for (const auto& label : labels) {
      const std::string text = label.get<std::string>();
      if constexpr (std::is_same_v<T, std::string>) {
        values.push_back(text);
      } else if constexpr (std::is_same_v<T, double>) {
        values.push_back(std::strtod(text.c_str(), nullptr));
      } else {
        values.push_back(std::stoll(text));
      }
    }
  }
  return values;
}

std::string text(const std::string& value) { return value; }
std::string text(std::int64_t value) { return std::to_string(value); }
std::string text(double value) {
  std::uint64_t bits;
  static_assert(sizeof bits == sizeof value);
  std::memcpy(&bits, &value, sizeof bits);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(bits));
  return hex;
}

std::string text(const labeldp::Combination::value_type& value) {
  return std::visit([](const auto& own) { return text(own); }, value);
}

json text(const labeldp::Combination& label) {
  json result = json::array();
  for (const auto& value : label) result.push_back(text(value));
  return result;
}

template <class T>
json texts(const std::vector<T>& values) {
  json result = json::array();
  for (const auto& value : values) result.push_back(text(value));
  return result;
}

json texts(const std::map<std::string, labeldp::Values>& columns) {
  json result;
  for (const auto& [name, values] : columns) {
    result[name] = std::visit([](const auto& own) { return texts(own); }, values);
  }
  return result;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// Each batch with the same words: as labels that may be null, and with what stands in for null.
template <class Output, class Label>
json in_turn(const labeldp::Randomizer& randomizer, const json& batches,
             const std::vector<std::uint64_t>& words) {
  json result;
  for (const auto& batch : batches) {
    std::vector<std::optional<Label>> labels;
    std::vector<Label> without_nulls;
    for (const auto& label : batch) {
      std::optional<Label> value;
      if (!label.is_null()) value = read<Label>({label}, 1).at(0);
      if constexpr (std::is_same_v<Label, std::string>) {
        if (value) value = from_hex(*value);
      }
      labels.push_back(value);
      without_nulls.push_back(value.value_or(randomizer.missing<Label>()));
    }
    const auto outputs = randomizer.apply_words<Output>(labels, words);
    if (outputs != randomizer.apply_words<Output>(without_nulls, words)) {
      throw std::runtime_error("std::optional and missing() differ");
    }
    result["outputs"].push_back(texts(outputs));
  }
  return result;
}

static_assert(!std::is_constructible_v<labeldp::Groups, std::vector<double>>,
              "a column of groups must outlive the call");

/// Columns by name, of labels or of groups, which live as long as this does.
class Named {
 public:
  /// Of labels, if there is a randomizer, also with what stands in for nulls.
  Named(const json& stated, std::size_t repeat, const labeldp::Randomizer* labels = nullptr)
      : labels_(labels) {
    for (const auto& [name, column] : stated.items()) {
      const std::string type = column["type"];
      if (type == "float64") add<double>(name, column["values"], repeat);
      if (type == "int64") add<std::int64_t>(name, column["values"], repeat);
      if (type == "string") add<std::string>(name, column["values"], repeat);
    }
  }

  labeldp::Columns columns, without_nulls;

 private:
  template <class T>
  void add(const std::string& name, const json& values, std::size_t repeat) {
    const bool has_null = std::find(values.begin(), values.end(), nullptr) != values.end();
    if (has_null) {
      std::vector<std::optional<T>> found;
      for (std::size_t i = 0; i < values.size() * repeat; ++i) {
        const auto& value = values[i % values.size()];
        found.emplace_back();
        if (!value.is_null()) found.back() = read<T>({value}, 1).at(0);
      }
      if (labels_ != nullptr) {
        std::vector<T> filled;
        for (const auto& value : found) filled.push_back(value.value_or(labels_->missing<T>(name)));
        hold(without_nulls, name, std::move(filled));
      }
      hold(columns, name, std::move(found));
    } else {
      hold(columns, name, read<T>(values, repeat));
      without_nulls.emplace(name, columns.at(name));
    }
  }

  template <class Values>
  void hold(labeldp::Columns& columns, const std::string& name, Values values) {
    const auto kept = std::make_shared<const Values>(std::move(values));
    kept_.push_back(kept);
    columns.emplace(name, *kept);
  }

  const labeldp::Randomizer* labels_;
  std::vector<std::shared_ptr<const void>> kept_;
};

/// As many calls as the case asks for, timed or at once.
template <class Once>
json called(const Once& once, const json& test_case) {
  const int calls = test_case.value("calls", 1);
  json result;
  if (test_case.value("timed", false)) {
    for (int i = 0; i < calls; ++i) {
      const auto start = std::chrono::steady_clock::now();
      once();
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      result["seconds"].push_back(seconds.count());
    }
    return result;
  }
  std::vector<std::future<decltype(once())>> running;
  for (int i = 0; i < calls; ++i) running.push_back(std::async(std::launch::async, once));
  for (auto& call : running) result["outputs"].push_back(texts(call.get()));
  return result;
}

std::vector<std::uint64_t> words_of(const json& test_case) {
  std::vector<std::uint64_t> words;
  for (const auto& word : test_case.value("words", json::array())) {
    words.push_back(std::stoull(word.get<std::string>(), nullptr, 16));
  }
  return words;
}

template <class Output, class Label>
json answer(const labeldp::Randomizer& randomizer, const json& test_case) {
  const Named groups(test_case.value("columns", json::object()), test_case.value("repeat", 1));
  const auto words = words_of(test_case);
  if (test_case.contains("batches")) {
    return in_turn<Output, Label>(randomizer, test_case["batches"], words);
  }
  const auto labels = read<Label>(test_case["labels"], test_case.value("repeat", 1));
  const auto once = [&] {
    return test_case.contains("words")
               ? randomizer.apply_words<Output>(labels, words, groups.columns)
               : randomizer.randomize<Output>(labels, groups.columns);
  };
  return called(once, test_case);
}

/// The labels in each private label, or what is wrong with it.
template <class Label, class Output>
json members(const labeldp::Randomizer& randomizer, const std::vector<Output>& outputs) {
  json result;
  for (const auto& output : outputs) {
    try {
      result["outputs"].push_back(texts(randomizer.members<Label>(output)));
    } catch (const std::invalid_argument& error) {
      result["outputs"].push_back(std::string("invalid_argument: ") + error.what());
    }
  }
  return result;
}

std::vector<labeldp::Combination> read_combinations(const json& rows) {
  std::vector<labeldp::Combination> labels;
  for (const auto& row : rows) {
    labels.emplace_back();
    for (const auto& value : row) {
      const std::string type = value[0];
      if (type == "float64") labels.back().push_back(read<double>({value[1]}, 1).at(0));
      if (type == "int64") labels.back().push_back(read<std::int64_t>({value[1]}, 1).at(0));
      if (type == "string") labels.back().push_back(value[1].get<std::string>());
    }
  }
  return labels;
}

/// Of labels of several columns.
json answer_columns(const labeldp::Randomizer& randomizer, const json& test_case) {
  if (test_case.contains("members")) {
    const json& stated = test_case["members"];
    return test_case["outputs"] == "combinations"
               ? members<labeldp::Combination>(randomizer, read_combinations(stated))
               : members<labeldp::Combination>(randomizer, read<std::int64_t>(stated, 1));
  }
  const Named labels(test_case["labels"], test_case.value("repeat", 1), &randomizer);
  const Named groups(test_case.value("columns", json::object()), test_case.value("repeat", 1));
  const auto words = words_of(test_case);
  const bool are_given = test_case.contains("words");
  if (randomizer.output_types().size() > 1) {
    if (are_given && randomizer.apply_words(labels.columns, words, groups.columns) !=
                         randomizer.apply_words(labels.without_nulls, words, groups.columns)) {
      throw std::runtime_error("std::optional and missing() differ");
    }
    const auto once = [&] {
      return are_given ? randomizer.apply_words(labels.columns, words, groups.columns)
                       : randomizer.randomize(labels.columns, groups.columns);
    };
    return called(once, test_case);
  }
  const auto once = [&] {
    return are_given
               ? randomizer.apply_words<std::int64_t>(labels.columns, words, groups.columns)
               : randomizer.randomize<std::int64_t>(labels.columns, groups.columns);
  };
  return called(once, test_case);
}

template <class Output, class Label>
json answer_as(const labeldp::Randomizer& randomizer, const json& test_case) {
  if (test_case.contains("members")) {
    return members<Label>(randomizer, read<Output>(test_case["members"], 1));
  }
  return answer<Output, Label>(randomizer, test_case);
}

template <class Label>
json answer(const labeldp::Randomizer& randomizer, const json& test_case) {
  switch (randomizer.output_type()) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
      return answer_as<double, Label>(randomizer, test_case);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
      return answer_as<std::string, Label>(randomizer, test_case);
    default:
      return answer_as<std::int64_t, Label>(randomizer, test_case);
  }
}

json answer(const std::string& directory, const json& test_case) {
  try {
    const labeldp::Randomizer randomizer(directory + "/" + test_case["file"].get<std::string>(),
                                         test_case.value("prepared", false));
    if (!test_case.contains("type")) return {{"outputs", json::array()}};
    const std::string type = test_case["type"];
    if (type == "columns") return answer_columns(randomizer, test_case);
    if (type == "float64") return answer<double>(randomizer, test_case);
    if (type == "string" || type == "bytes") return answer<std::string>(randomizer, test_case);
    return answer<std::int64_t>(randomizer, test_case);
  } catch (const labeldp::ArtifactError& error) {
    return {{"error", std::string("ArtifactError: ") + error.what()}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

int main(int, char** arguments) {
  const std::string directory = arguments[1];
  std::ifstream file(directory + "/cases.json");
  json answers = json::array();
  for (const auto& test_case : json::parse(file)) answers.push_back(answer(directory, test_case));
  std::ofstream(directory + "/cpp.json") << answers;
}
