// demo doctor-visits.onnx: randomizes a few labels.

#include "labeldp.hpp"

#include <iostream>

int main(int, char** arguments) {
  try {
    const labeldp::Randomizer randomizer(arguments[1]);
    const auto& certificate = randomizer.certificate();
    std::cout << labeldp::printable(certificate["name"]) << ": ε = "
              << labeldp::printable(certificate["privacy"]["epsilon_label_bound"])
              << " for each label\n";

    const auto null = randomizer.missing<std::int64_t>();
    const std::vector<std::int64_t> labels = {0, 3, 12, null, 1000000000};
    const auto noisy = randomizer.randomize<double>(labels);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      std::cout << labels[i] << " -> " << noisy[i] << "\n";
    }
  } catch (const std::exception& error) {
    std::cerr << "refused: " << error.what() << "\n";
    return 1;
  }
}
