# Sets _wgemm_cache to the folder of downloads, by the same rule as scripts/run.mjs.
set(_wgemm_cache "$ENV{WGEMM_CACHE}")
if(NOT _wgemm_cache)
  set(_wgemm_cache "$ENV{XDG_CACHE_HOME}/wgemm")
  if("$ENV{XDG_CACHE_HOME}" STREQUAL "")
    set(_wgemm_cache "$ENV{HOME}/.cache/wgemm")
  endif()
endif()
