// Products as plain loops, which the bench compares with: C = A * B, row-major, where A is M x K.
#pragma once

void multiply_by_loops(int m, int n, int k, const float* a, const float* b, float* c);
void multiply_by_loops(int m, int n, int k, const double* a, const double* b, double* c);
