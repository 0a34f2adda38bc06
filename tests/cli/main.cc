#define BOOST_TEST_MODULE waybill_cli
#include <boost/test/unit_test.hpp>
