#define BOOST_TEST_MODULE waybill_crash
#include <boost/test/unit_test.hpp>
