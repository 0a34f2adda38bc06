#define BOOST_TEST_MODULE waybill_advise
#include <boost/test/unit_test.hpp>
