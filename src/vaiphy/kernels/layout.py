"""Where things are in the flat arrays that the kernels read (`families.Data.layout`)."""

#: Rows of `Data.layout`: of each part its states, rate categories and patterns, and where it begins in rows of partials, rows of
#: tips, counts, frequencies, categories, exponents and tables (those have one entry more: the end). The patterns that occur
#: most often come first: the first REPEATED have a count other than 1, and those from COUNTED on have the count 0.
STATES, CATEGORIES, PATTERNS, ROW_AT, TIP_AT, COUNT_AT, STATE_AT, CATEGORY_AT, TERM_AT, TABLE_AT, REPEATED, COUNTED = range(12)
