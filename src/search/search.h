// search() and max_sim() after the checks of their arguments, except the elements of queries.
#pragma once

#include "wgemm.h"

namespace wgemm {

Status run_search(Context& context, const SearchArgs& args);
Status run_max_sim(Context& context, const MaxSimArgs& args);

}  // namespace wgemm
