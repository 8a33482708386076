import { createGemm } from 'wgemm';

const wg = await createGemm();
const [a, b] = [wg.alloc('float32', [64, 256]), wg.alloc('float32', [256, 512])];
console.log(wg.explain('gemm', a, b)); // takes the arguments of the call, and computes nothing
wg.dispose();
