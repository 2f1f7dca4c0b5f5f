// Which files and folders a program needs to read, as far as its command and the environment say.
#pragma once
#include <string>
#include <vector>

#include "lib/process/sandbox.hpp"

namespace hexad::process {

// TMPDIR, or /tmp where that is not set or no folder.
std::string temporary_folder();

// The file that is run as this program: the name itself where it has a '/', or the first of that name on PATH; empty
// where there is none that can be run.
std::string program_file(const std::string& name);

// The sandbox of a program that is started in our working folder. It writes there, and an ordinary one in
// temporary_folder() too. A strict one reads
// - files and folders that a word of the command names, and the folders in which such files are,
// - its interpreter's installation: bin, lib ... (of pyenv: all) around each program that a word of the command finds
//   on PATH, around what such a name is a link to, and around the program that a first line #!... names,
// - folders of PATH, PYTHONPATH, LD_LIBRARY_PATH, and libraries of the user's own in ~/.local/lib,
// but of folders that are much more than a program's own (the home folder, that of temporary files, and what is above
// either) only the files that are named; and it does not write its working folder where that is one of these.
// `command`: the program first.
Sandbox sandbox_of(const std::vector<std::string>& command, bool strict);

}  // namespace hexad::process
