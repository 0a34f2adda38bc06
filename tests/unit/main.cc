#define BOOST_TEST_MODULE waybill_unit
#include <boost/test/unit_test.hpp>
