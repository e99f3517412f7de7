define void @k() { ret i32 0 }
