// What the command asks of the system that it runs on.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace posenc::cli {

// Bytes of memory. Beyond it the system would end the process instead of refusing.
std::size_t machine_memory();

// Of the terminal on standard output: 0 where there is none.
std::size_t terminal_columns();

// Whether text may hold more than ASCII.
bool speaks_utf8();

// The path of the running program; empty where the system does not say.
std::string own_program();

// The program's arguments without its name, as UTF-8.
std::vector<std::string> arguments_of(int argc, char** argv);

// Called before anything is read or printed: both are bytes from then on, and a mapped file that is
// lost ends the program with a sentence.
void begin();

}  // namespace posenc::cli
