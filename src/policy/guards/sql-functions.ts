import type { Dialect } from './sql-dialects.ts'

/**
 * Functions that only compute or read. This is an allow-list: a function that is not listed may write, which the
 * statement does not show. The list was checked against the volatility in PostgreSQL's catalog. It excludes functions
 * that read files, run SQL from text, take locks or wait.
 */
const builtInFunctions = nameSet(`
  abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees
  div erf erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod pi pow power radians random
  random_normal round scale sign sin sind sinh sqrt tan tand tanh trim_scale trunc width_bucket

  ascii bit_length btrim casefold char_length character_length chr concat concat_ws decode encode format initcap
  is_normalized left length like like_escape lower lpad ltrim md5 normalize notlike octet_length overlay parse_ident
  position quote_ident quote_literal quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches
  regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim
  sha224 sha256 sha384 sha512 similar_escape similar_to_escape split_part starts_with string_to_array string_to_table
  strpos substr substring to_ascii to_bin to_hex to_oct translate unicode_assigned unistr upper bit_count crc32 crc32c
  get_bit get_byte set_bit set_byte convert convert_from convert_to

  age clock_timestamp date date_add date_bin date_part date_subtract date_trunc extract isfinite justify_days
  justify_hours justify_interval make_date make_interval make_time make_timestamp make_timestamptz now overlaps
  statement_timestamp time timeofday timestamp timestamptz timetz timezone to_char to_date to_number to_timestamp
  transaction_timestamp

  bool bpchar cidr float4 float8 inet int2 int4 int8 interval money name numeric oid regclass text uuid varchar xml

  any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp cume_dist dense_rank
  every first_value grouping json_agg json_agg_strict json_object_agg jsonb_agg jsonb_agg_strict jsonb_object_agg
  json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict jsonb_object_agg_strict
  jsonb_object_agg_unique jsonb_object_agg_unique_strict lag last_value lead max min mode nth_value ntile percent_rank
  percentile_cont percentile_disc range_agg range_intersect_agg rank regr_avgx regr_avgy regr_count regr_intercept
  regr_r2 regr_slope regr_sxx regr_sxy regr_syy row_number stddev stddev_pop stddev_samp string_agg sum var_pop
  var_samp variance xmlagg

  array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions
  array_prepend array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_json
  array_to_string array_upper cardinality generate_series generate_subscripts trim_array unnest num_nonnulls num_nulls

  json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
  json_each_text json_extract_path json_extract_path_text json_object json_object_keys json_populate_record
  json_populate_recordset json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_array_elements
  jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
  jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_keys jsonb_path_exists
  jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array
  jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
  jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset
  jsonb_typeof row_to_json to_json to_jsonb xmlcomment xmlexists xpath xpath_exists

  array_to_tsvector get_current_ts_config json_to_tsvector jsonb_to_tsvector numnode phraseto_tsquery plainto_tsquery
  querytree setweight strip to_tsquery to_tsvector ts_delete ts_filter ts_headline ts_lexize ts_rank ts_rank_cd
  tsquery_phrase tsvector_to_array websearch_to_tsquery

  abbrev broadcast family host hostmask inet_merge inet_same_family masklen netmask network set_masklen
  area box center circle diameter height isclosed isopen line lseg path point polygon radius slope width
  daterange int4range int8range isempty lower_inc lower_inf multirange numrange range_merge tsrange tstzrange upper_inc
  upper_inf enum_first enum_last enum_range gen_random_uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7

  col_description current_database current_schema current_schemas current_setting current_user format_type
  has_any_column_privilege has_column_privilege has_database_privilege has_function_privilege has_schema_privilege
  has_sequence_privilege has_table_privilege has_type_privilege inet_server_addr inet_server_port obj_description
  pg_backend_pid pg_blocking_pids pg_client_encoding pg_collation_for pg_column_compression pg_column_size
  pg_conf_load_time pg_database_size pg_describe_object pg_encoding_to_char pg_function_is_visible
  pg_get_constraintdef pg_get_expr pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result
  pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partition_constraintdef pg_get_partkeydef pg_get_ruledef
  pg_get_serial_sequence pg_get_statisticsobjdef pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role
  pg_index_column_has_property pg_indexes_size pg_is_in_recovery pg_opclass_is_visible pg_operator_is_visible
  pg_options_to_table pg_partition_ancestors pg_partition_root pg_partition_tree pg_postmaster_start_time
  pg_relation_is_updatable pg_relation_size pg_size_bytes pg_size_pretty pg_table_is_visible pg_table_size
  pg_tablespace_location pg_total_relation_size pg_type_is_visible pg_typeof row_security_active session_user
  shobj_description to_regclass to_regnamespace to_regproc to_regprocedure to_regrole to_regtype version
`)

/** Functions from common extensions, which may be installed in any schema. These also only compute or read. */
const extension = nameSet(`
  similarity word_similarity strict_word_similarity show_trgm unaccent soundex difference daitch_mokotoff levenshtein
  levenshtein_less_equal metaphone dmetaphone dmetaphone_alt uuid_generate_v1 uuid_generate_v1mc uuid_generate_v3
  uuid_generate_v4 uuid_generate_v5 uuid_nil digest hmac akeys avals hstore hstore_to_json hstore_to_jsonb skeys svals
  lca nlevel subltree subpath ltree2text text2ltree earth_distance ll_to_earth cube_distance
  cosine_distance inner_product l1_distance l2_distance l2_norm l2_normalize vector_dims vector_norm subvector
  binary_quantize hamming_distance jaccard_distance time_bucket time_bucket_gapfill locf interpolate
  st_area st_asewkt st_asgeojson st_asmvtgeom st_astext st_azimuth st_boundary st_buffer st_centroid st_closestpoint
  st_collect st_contains st_convexhull st_coveredby st_covers st_crosses st_difference st_disjoint st_distance
  st_distancesphere st_dwithin st_envelope st_equals st_extent st_geogfromtext st_geographyfromtext st_geohash
  st_geometrytype st_geomfromgeojson st_geomfromtext st_intersection st_intersects st_isvalid st_length
  st_lineinterpolatepoint st_makeenvelope st_makeline st_makepoint st_makepolygon st_makevalid st_npoints st_numpoints
  st_overlaps st_perimeter st_point st_pointonsurface st_setsrid st_simplify st_srid st_touches st_transform st_union
  st_within st_x st_xmax st_xmin st_y st_ymax st_ymin st_z
`)

/** Pragmas of SQLite that only read. */
const readingPragmas = nameSet(`
  pragma_application_id pragma_collation_list pragma_compile_options pragma_database_list pragma_encoding
  pragma_foreign_key_check pragma_foreign_key_list pragma_freelist_count pragma_function_list pragma_index_info
  pragma_index_list pragma_index_xinfo pragma_integrity_check pragma_module_list pragma_page_count pragma_page_size
  pragma_pragma_list pragma_quick_check pragma_schema_version pragma_table_info pragma_table_list pragma_table_xinfo
  pragma_user_version
`)

const further: Readonly<Record<Dialect, ReadonlySet<string>>> = {
  // Allow no others if the dialect is unknown: what is harmless in one database may do anything in another.
  any: nameSet(''),
  postgres: nameSet(''),
  mysql: nameSet(`
    adddate addtime ascii bin binary char conv convert_tz curdate current_timestamp curtime datediff datetime date_format
    date_sub day dayname dayofmonth dayofweek dayofyear elt field find_in_set from_days from_unixtime group_concat hex
    hour if ifnull inet_aton inet_ntoa insert instr isnull json_array json_arrayagg json_contains json_contains_path
    json_depth json_extract json_keys json_length json_objectagg json_overlaps json_pretty json_quote json_search json_type
    json_unquote json_valid json_value last_day lcase locate log2 makedate maketime microsecond mid minute month
    monthname nullif oct ord period_add period_diff quarter quote rand sec_to_time second sha sha1 sha2 space std
    str_to_date strcmp subdate substring_index subtime sysdate time_format time_to_sec timediff timestampadd
    timestampdiff to_days to_seconds truncate ucase unhex unix_timestamp user utc_date utc_time utc_timestamp uuid
    uuid_to_bin bin_to_uuid week weekday weekofyear year yearweek database schema
  `),
  sqlite: nameSet(`
    changes char datetime glob group_concat hex ifnull iif instr json json_array json_extract json_group_array
    json_group_object json_insert json_patch json_quote json_remove json_replace json_set json_tree json_type json_valid
    julianday last_insert_rowid likelihood likely log2 nullif octet_length printf quote sqlite_version strftime substring
    timediff total total_changes typeof unhex unicode unixepoch unlikely bm25 highlight snippet
    ${[...readingPragmas].join(' ')}
  `),
}

export function isHarmlessFunction(name: readonly string[], dialect: Dialect): boolean {
  const plain = name.at(-1) as string
  const schema = name.length > 1 ? name.slice(0, -1).join('.') : undefined
  // In other dialects, function names are not case-sensitive, even where PostgreSQL's parser preserves the case.
  const known = dialect === 'postgres' || dialect === 'any' ? plain : plain.toLowerCase()
  if (schema === undefined) return builtInFunctions.has(known) || extension.has(known) || further[dialect].has(known)
  return schema === 'pg_catalog' ? builtInFunctions.has(known) : extension.has(known)
}

/** Table-valued functions of the sqlite3 program and of common extensions that reach files or the network. */
const reachingTables = nameSet(`
  fsdir zipfile lsdir fileio_ls fileio_scan lines_read csv_reader tsv_reader xsv_reader http_get http_post http_do
`)

/** PostgreSQL's views of the server's configuration files. */
const fileViews = nameSet('pg_hba_file_rules pg_file_settings pg_ident_file_mappings')

/**
 * Whether a table only holds data. In SQLite, a table-valued function is also a table, in every schema: its arguments
 * are hidden columns, as in `SELECT data FROM fsdir WHERE path = '…'`.
 */
export function isHarmlessTable(name: string, dialect: Dialect): boolean {
  const known = name.toLowerCase()
  if ((dialect === 'postgres' || dialect === 'any') && fileViews.has(known)) return false
  if (dialect !== 'sqlite' && dialect !== 'any') return true
  return known.startsWith('pragma_') ? readingPragmas.has(known) : !reachingTables.has(known)
}

/**
 * The columns of functions that declare their own columns. For any other function in FROM, PostgreSQL may read `x.name`
 * as the call name(x). The same applies to `(…).name` with any other value. Only these columns are certainly not calls.
 */
const functionColumns: Readonly<Record<string, readonly string[]>> = {
  json_array_elements: ['value'],
  json_array_elements_text: ['value'],
  json_each: ['key', 'value'],
  json_each_text: ['key', 'value'],
  jsonb_array_elements: ['value'],
  jsonb_array_elements_text: ['value'],
  jsonb_each: ['key', 'value'],
  jsonb_each_text: ['key', 'value'],
  pg_get_keywords: ['word', 'catcode', 'barelabel', 'catdesc', 'baredesc'],
  pg_options_to_table: ['option_name', 'option_value'],
  pg_partition_ancestors: ['relid'],
  pg_partition_tree: ['relid', 'parentrelid', 'isleaf', 'level'],
}

export const columnsOfFunction = (called: string): readonly string[] | undefined =>
  Object.hasOwn(functionColumns, called) ? functionColumns[called] : undefined

function nameSet(list: string): ReadonlySet<string> {
  return new Set(list.split(/\s+/).filter((name) => name !== ''))
}
