// copied FILE ROWS ASK: private labels of a process and of its copy (tests/copied_process.c).

#include <unistd.h>

#include <iostream>
#include <labeldp.hpp>
#include <string>

int main(int, char** arguments) {
  const labeldp::Randomizer randomizer(arguments[1]);
  const std::vector<std::int64_t> labels(std::stoul(arguments[2]), 3);
  const auto draw = [&] {
    std::size_t hash = 0;
    for (const double value : randomizer.randomize<double>(labels)) {
      hash = hash * 1000003 + std::hash<double>()(value);
    }
    return std::to_string(hash);
  };
  draw();
  access(arguments[3], 0);
  const std::string first = draw(), second = draw();
  std::cout << std::to_string(getpid()) + " " + first + " " + second + "\n" << std::flush;
  _exit(0);
}
