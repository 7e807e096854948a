// The codes by which a program names the types of rows that are sorted and added up.
enum { FT_ROW_F32, FT_ROW_F64, FT_ROW_F16, FT_ROW_BF16, FT_ROW_I8, FT_ROW_I16, FT_ROW_I32,
       FT_ROW_I64, FT_ROW_U8, FT_ROW_U16, FT_ROW_U32, FT_ROW_U64, FT_ROW_BOOL };

static const i64 ft_row_items[] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1};
