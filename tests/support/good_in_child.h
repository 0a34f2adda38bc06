// What is judged in a child that may mount: it says "good", or what is wrong.

#ifndef WAYBILL_TESTS_SUPPORT_GOOD_IN_CHILD_H_
#define WAYBILL_TESTS_SUPPORT_GOOD_IN_CHILD_H_

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/mounts.h"

namespace waybill::testing {

// Left out where the child may not mount.
inline void ExpectGoodInChild(const std::function<std::string()>& work) {
  const std::string answer = InChild(work);
  if (answer == kMayNotMount) {
    BOOST_TEST_MESSAGE("left out: " << answer);
  } else {
    BOOST_TEST(answer == "good");
  }
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_GOOD_IN_CHILD_H_
