// driver DIRECTORY: answers DIRECTORY/cases.json into DIRECTORY/cpp.json, as harness.py says.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>

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

template <class Output, class Label>
json answer(const labeldp::Randomizer& randomizer, const json& test_case) {
  const auto labels = read<Label>(test_case["labels"], test_case.value("repeat", 1));
  std::vector<std::uint64_t> words;
  for (const auto& word : test_case.value("words", json::array())) {
    words.push_back(std::stoull(word.get<std::string>(), nullptr, 16));
  }
  const std::function<std::vector<Output>()> once = [&] {
    return test_case.contains("words") ? randomizer.apply_words<Output>(labels, words)
                                       : randomizer.randomize<Output>(labels);
  };
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
  std::vector<std::future<std::vector<Output>>> running;
  for (int i = 0; i < calls; ++i) running.push_back(std::async(std::launch::async, once));
  for (auto& call : running) {
    json texts = json::array();
    for (const auto& value : call.get()) texts.push_back(text(value));
    result["outputs"].push_back(std::move(texts));
  }
  return result;
}

template <class Label>
json answer(const labeldp::Randomizer& randomizer, const json& test_case) {
  return randomizer.output_type() == ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE
             ? answer<double, Label>(randomizer, test_case)
             : answer<Label, Label>(randomizer, test_case);
}

json answer(const std::string& directory, const json& test_case) {
  try {
    const labeldp::Randomizer randomizer(directory + "/" + test_case["file"].get<std::string>());
    if (!test_case.contains("labels")) return {{"outputs", json::array()}};
    const std::string type = test_case["type"];
    if (type == "float64") return answer<double>(randomizer, test_case);
    if (type == "string") return answer<std::string>(randomizer, test_case);
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
