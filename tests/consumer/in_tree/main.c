#include <waybill.h>

int main(void) { return waybill_version().length == 0; }
