#define BOOST_TEST_MODULE waybill_model
#include <boost/test/unit_test.hpp>
