#define BOOST_TEST_MODULE waybill_threads
#include <boost/test/unit_test.hpp>
