#define BOOST_TEST_MODULE waybill_guard
#include <boost/test/unit_test.hpp>
