#define BOOST_TEST_MODULE waybill_docs
#include <boost/test/unit_test.hpp>
