#include <waybill.h>

int main(void) { return waybill_version()[0] == 0; }
