// What the C of docs/linking.md leaves to its reader. See linking.cc.

#include <waybill.h>

void pull_it(waybill_image_copy copy);
void decide(waybill_store* store, waybill_string image, waybill_string image_ref,
            waybill_string handler, waybill_pod_credentials pod_credentials);

void decide(waybill_store* store, waybill_string image, waybill_string image_ref,
            waybill_string handler, waybill_pod_credentials pod_credentials) {
#include "c-1"
}
