// Kubelet files within the limits of a file, but above those of the store.

#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(import_bounds)

// Empty secrets take three bytes each in JSON, and more in the store.
BOOST_AUTO_TEST_CASE(a_record_too_large_to_store_closes_its_image_and_stops_no_other) {
  UnderBothRules([](ScratchStore& store) {
    std::string secrets = "{}";
    for (std::size_t i = 1; i < kMaxCredentialsPerName; ++i) secrets += ",{}";
    std::string mapping;
    for (int name = 0; name < 16; ++name) {
      if (name != 0) mapping += ',';
      mapping += "\"registry.example/" + std::to_string(name) + "\":{\"kubernetesSecrets\":[" +
                 secrets + "]}";
    }
    const auto record = [](std::string_view ref, std::string_view credentials) {
      return R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","imageRef":")" +
             std::string(ref) + R"(","credentialMapping":{)" + std::string(credentials) + "}}\n";
    };
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, record(kRef, mapping));
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef2, record(kRef2, ""));
    store.Restart();
    BOOST_TEST(store->recovery_report().import.records == 1U);
    BOOST_TEST(store->recovery_report().import.quarantined == 1U);
    Expect(store.Check(kImage, kRef), true, CheckResult::kError, Reason::kQuarantined);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
