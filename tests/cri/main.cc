#define BOOST_TEST_MODULE waybill_cri
#include <boost/test/unit_test.hpp>
