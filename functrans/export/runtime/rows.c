// The codes by which a program names the types of rows that are sorted and added up.
#include "row_types.h"

static const i64 ft_row_items[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
