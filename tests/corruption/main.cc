#define BOOST_TEST_MODULE waybill_corruption
#include <boost/test/unit_test.hpp>
