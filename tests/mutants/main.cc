#define BOOST_TEST_MODULE waybill_mutants
#include <boost/test/unit_test.hpp>
