// If a standard stream is closed, the next file that is opened gets its number: one of the store's,
// and an answer would be written into the database; or a library's, which it opens before main. So
// each closed stream gets a descriptor of its own before any library is initialised.

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

// Each is replaced by a descriptor that can't be used: standard output can't be written, so that a
// lost answer stays an error, and standard input can't be read, so that `-` is not an empty list.
void ClaimStandardStreams(int, char**, char**) {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // Descriptors below fd are open, so this one gets its number. 3: as what the store refuses.
    if (::open("/dev/null", kModes[fd]) != fd) ::_exit(3);
  }
}

// Before the constructors of shared libraries, too.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kClaims)(int, char**,
                                                                    char**) = ClaimStandardStreams;

}  // namespace
