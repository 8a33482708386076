/* xnnpack.h includes this for one type, which no kernel uses. */
#pragma once

typedef struct pthreadpool* pthreadpool_t;
