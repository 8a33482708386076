export async function firstResult(a, b) {
  const { createGemm } = await import('wgemm');
  const wg = await createGemm();
  return wg.gemm(a, b).data;
}
