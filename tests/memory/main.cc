#define BOOST_TEST_MODULE waybill_memory
#include <boost/test/unit_test.hpp>
