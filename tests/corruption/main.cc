#define BOOST_TEST_MODULE waybill_corruption
#include <stdlib.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

namespace {

// Thousands of stores are made and thrown away: in memory, where there is a place for that.
struct ScratchInMemory {
  ScratchInMemory() {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
  }
};
BOOST_TEST_GLOBAL_CONFIGURATION(ScratchInMemory);

}  // namespace
