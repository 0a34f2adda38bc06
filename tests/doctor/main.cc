#define BOOST_TEST_MODULE waybill_doctor
#include <boost/test/unit_test.hpp>
